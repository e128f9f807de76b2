"""Takes down every attention that happens inside a model, with the module it happens in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.modules.late import nn, torch
from neural.modules.mask import Mask
from neural.tracking.look import HIDING, Look
from neural.tracking.placement import TWO_SEQUENCES, CacheUpdate, Placement, place
from neural.tracking.seen import Call, Seen
from neural.tracking.softmax_calls import SoftmaxCall, WeightTracker
from neural.tracking.written import Written

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.modules.mechanism import Mechanism

WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.")
"""What torch puts into paths where a module is compiled or recomputed."""
HUGGING_FACE = ("transformers.", "transformers_modules.")
CROSS = re.compile(
    r"^cross$|cross_?(attn|attention|mha)|encoder_attn|enc(oder)?_?dec(oder)?_?(attn|attention)"
    r"|(src|source|context|memory)_?(attn|attention)",
    re.IGNORECASE,
)
"""Names of cross-attention modules."""
BESIDE = re.compile(r"^(pre|post)_|norm|dropout|out(put)?$|_hc$", re.IGNORECASE)
"""Names of modules next to attention that do not attend; `attn_hc` is a hyper-connection."""
SAMPLED = re.compile("ProbSparse")
"""Classes that attend from some queries only, reordered."""
QUERY_NAMES, KEY_NAMES = {"q", "query", "queries", "wq"}, {"k", "key", "keys", "wk", "kv", "wkv"}
"""Words in the names of query and key projections."""
POSITION_NAMES = {"pos", "position", "rel", "relative"}
"""Words in the names of projections of relative positions."""
HEAD_COUNT = re.compile(
    r"(^|_)(n|num)_(?!k(ey_)?v)(\w+_)?heads?$|^(encoder|decoder)_attention_heads$|^n?heads?$"
)
"""Attributes of modules and configurations that give the number of query heads."""


@dataclass(eq=False)
class Forward:
    """One run of a module's `forward`, and the attention recorded in it."""

    module: nn.Module
    path: str
    calls: list[Call] = field(default_factory=list)
    softmax_calls: list[SoftmaxCall] = field(default_factory=list)
    """Softmax calls whose product with values has not happened yet."""
    cache_update: CacheUpdate | None = None
    projected: dict[str, list[Tensor]] = field(default_factory=dict)
    """Inputs of the query ("q") and key ("k") projections."""
    refusal: str | None = None
    """Why its attention is not measured."""
    doubt: str | None = None
    """A weaker reason: used if there is no `refusal`."""
    is_silent: bool = False
    recognised: int = 0
    """Number of calls and refusals recorded before this run."""

    @property
    def name(self) -> str:
        """Attribute name of the module in its parent."""
        return self.path.rpartition(".")[2]

    @property
    def is_attention(self) -> bool:
        """Whether the module is attention, by name."""
        return is_attention(self.name, self.module)

    @property
    def is_hugging_face(self) -> bool:
        """Whether the module comes from transformers, or from remote code loaded by it."""
        return type(self.module).__module__.startswith(HUGGING_FACE)

    def projected_queries(self, queries: int) -> int | None:
        """Length of the query projection's input; None if unknown.

        `queries` if any axis of the input has that size: the axes may have any order.
        """
        inputs = [tensor for tensor in self.projected.get("q", ()) if tensor.ndim == 3]
        if not inputs or any(queries in tensor.shape for tensor in inputs):
            return queries if inputs else None
        return inputs[0].shape[1]

    @property
    def folded_heads(self) -> int:
        """Number of heads folded into the first axis: transformers also writes (B · H, Q, K)."""
        counts = _counts(self.module) if self.is_hugging_face else set()
        return counts.pop() if len(counts) == 1 else 1


class Recorder:
    """Where calls go; knows which modules are running, and keeps silent where it must."""

    def __init__(
        self,
        model: nn.Module,
        seen: Seen,
        tokens: Int[Tensor, "B T"] | None = None,
        real: Bool[Tensor, "B T"] | None = None,
    ) -> None:
        self.model, self.seen, self.tokens, self.real = model, seen, tokens, real
        self.modules = {
            id(module): (_plain(path), module) for path, module in model.named_modules()
        }
        self.running: list[Forward] = []
        self.weights = WeightTracker()
        self.cache_updates: list[CacheUpdate] = []
        """Cache updates of the forward pass that is running."""
        self.ran = False
        """Whether any module of the model did."""
        self.suspected: list[str] = []
        """Where something happened that looks like attention and was not taken down."""
        self.unrecognised: dict[str, str] = {}
        """Attention modules, by name, that ran without any recognised call: path → class name."""
        self._newest: dict[str, Look] = {}
        self._inside = 0

    @property
    def path(self) -> str:
        """Of the innermost module of the model that is running."""
        return self.running[-1].path if self.running else ""

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is called in here belongs to an attention that is on record."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    @property
    def silent(self) -> bool:
        """Inside another attention, and where a backward pass computes things again."""
        return self._inside > 0 or torch._C._current_graph_task_id() != -1

    def enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """A module of the model begins to run."""
        self.ran = True
        forward = Forward(module, self.modules[id(module)][0], is_silent=self.silent)
        forward.recognised = self._recognised
        role = _projection_role(forward.name, module) if self.running else None
        if role is not None and args and isinstance(args[0], torch.Tensor):
            self.running[-1].projected.setdefault(role, []).append(args[0])
        self.running.append(forward)

    def leave(self) -> None:
        """The innermost module has run: check what was recorded in it."""
        forward = self.running.pop()
        if not self.running:
            self.cache_updates.clear()
        for call in forward.softmax_calls:
            self.weights.drop(call)
        if forward.is_silent:
            return
        if forward.is_hugging_face:
            self._check(forward)
        elif forward.refusal is not None:
            self.seen.refused[forward.path] = forward.refusal
        is_outermost = forward.is_attention and not any(
            outer.is_attention for outer in self.running
        )
        if is_outermost and _may_attend(forward) and self._recognised == forward.recognised:
            self.unrecognised[forward.path] = type(forward.module).__name__

    def note_cache_update(self, update: CacheUpdate) -> None:
        """The innermost module has updated a cache."""
        self.running[-1].cache_update = update
        self.cache_updates.append(update)

    def refuse(self, reason: str) -> None:
        """Do not measure the attention of the innermost module."""
        self.running[-1].refusal = self.running[-1].refusal or reason

    def is_cross_attention(self) -> bool:
        """Whether queries and keys come from two sequences in the innermost module.

        Decided by the inputs of the query and key projections, and by names if those are unknown.
        """
        modules = list(reversed(self.running))
        outside = next((at for at, forward in enumerate(modules) if not forward.is_attention), None)
        modules = modules[: max(1, len(modules) if outside is None else outside)]
        for forward in modules:
            queries, keys = (forward.projected.get(role, ()) for role in ("q", "k"))
            if queries and keys:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    return not any(is_same_data(q, k) for q in queries for k in keys)
        return any(
            CROSS.search(name)
            for forward in modules
            for name in (forward.name, type(forward.module).__name__)
        )

    def place(self, queries: int, k: Float[Tensor, "B G K D"], visible: Tensor | None) -> Placement:
        """Place the queries of a call in the innermost module."""
        forward = self.running[-1] if self.running else None
        update = None if forward is None else forward.cache_update
        if update is None:
            # a layer may share the keys that another layer has cached in this forward pass
            sizes = queries, k.shape[2]
            update = next((other for other in self.cache_updates if other[:2] == sizes), None)
        return place(
            queries,
            k,
            is_cross=self.is_cross_attention(),
            visible=visible,
            update=update,
            previous=self._newest.get(self.path),
            length=None if forward is None else forward.projected_queries(queries),
        )

    def by_mechanism(
        self,
        path: str,
        mechanism: Mechanism,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None,
        *,
        cross: bool,
    ) -> None:
        """Take an attention of ours down: as a softmax, or as what the mechanism makes of it.

        Masks of ours put the last query at the last key.
        """
        with torch._C.DisableTorchFunction(), torch.no_grad():
            rules = mechanism.as_softmax(q, k, mask, extra)
        keys = k.shape[2]
        placement = (
            Placement("keys", keys, note=TWO_SEQUENCES) if cross else Placement("shared", keys)
        )
        if rules is None:
            self.add(path, q, k, mask, placement, mechanism=mechanism, extra=extra)
        else:
            self.add(path, q, k, rules, placement)

    def add(
        self,
        path: str,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B G K D"],
        mask: Mask,
        placement: Placement,
        *,
        scale: float | None = None,
        real: Bool[Tensor, "B Q"] | None = None,
        extra_keys: int = 0,
        has_logits: bool = True,
        mechanism: Mechanism | None = None,
        extra: Tensor | None = None,
    ) -> None:
        """Record a call, without the empty slots of a cache; `extra_keys` as in `Look`."""
        forward = self.running[-1] if self.running else None
        if forward is not None and forward.is_hugging_face:
            reason = _misfit(forward, q.shape[1], extra_keys)
            is_unknown = placement.axis == "unknown" and self.real_queries(q) is None
            if is_unknown and q.shape[2] > 1 and _hides_keys(mask):
                forward.doubt = "which of its queries are padding is not known: give `real`"
            if reason is not None:
                self.refuse(reason)
                return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            q, k, look = q.detach(), k.detach(), None
            if q.isfinite().all() and k.isfinite().all():
                more = {
                    "scale": scale,
                    "first": placement.first,
                    "axis": placement.axis,
                    "extra_keys": extra_keys,
                    "tokens": self._tokens(k, placement, extra_keys),
                    "has_logits": has_logits,
                    "real": self._real(q, mask, placement) if real is None else real,
                }
                if mechanism is None:
                    look = Look(q, k, mask, **more)
                else:
                    extra = None if extra is None else extra.detach()
                    look = Written(q, k, mask, **more, mechanism=mechanism, extra=extra)
            call = Call(path, q.shape[1], look, self.seen.wanted, placement.note)
            self.seen.calls.append(call)
            if look is not None:
                self._newest[path] = look
            if forward is not None:
                forward.calls.append(call)

    @contextmanager
    def back_in(self, call: SoftmaxCall) -> Iterator[None]:
        """Return to the module of a softmax call for a while, and stop following the call."""
        running = self.running
        depth = next(at for at, forward in enumerate(running) if call in forward.softmax_calls)
        running[depth].softmax_calls.remove(call)
        self.running = running[: depth + 1]
        try:
            yield
        finally:
            self.running = running

    @property
    def _recognised(self) -> int:
        return len(self.seen.calls) + len(self.seen.refused)

    def _check(self, forward: Forward) -> None:
        """Drop the calls of a transformers module if they are not its complete attention."""
        again = [
            call
            for number, call in enumerate(forward.calls)
            if any(_is_same_call(call, earlier) for earlier in forward.calls[:number])
        ]
        self._forget(again)  # the same weights, applied to other values
        calls = [call for call in forward.calls if not any(call is other for other in again)]
        reason = forward.refusal
        if reason is None and forward.softmax_calls:
            shape = tuple(forward.softmax_calls[0].scores.shape)
            reason = f"no product of its softmax over {shape} with values was recognised"
        if reason is None and len(calls) > 1 and not all(_is_square(call) for call in calls):
            shapes = ", ".join(f"{queries} × {keys}" for queries, keys in map(_sizes, calls[:3]))
            reason = f"it computes attention in {len(calls)} parts, of queries × keys {shapes}"
        reason = reason or forward.doubt
        if reason is not None and (calls or not BESIDE.search(forward.name)):
            self._forget(calls)
            self.seen.refused[forward.path] = reason

    def _forget(self, calls: list[Call]) -> None:
        gone = {id(call) for call in calls}
        self.seen.calls[:] = [call for call in self.seen.calls if id(call) not in gone]

    def real_queries(self, q: Float[Tensor, "B H Q D"]) -> Bool[Tensor, "B Q"] | None:
        """The caller's padding mask, if it fits these queries."""
        fits = self.real is not None and tuple(self.real.shape) == (q.shape[0], q.shape[2])
        return self.real.to(q.device) if fits and self.real is not None else None

    def _tokens(self, k: Tensor, placement: Placement, extra_keys: int) -> Tensor | None:
        shape = k.shape[0], k.shape[2] - extra_keys
        if placement.axis != "shared" or self.tokens is None or tuple(self.tokens.shape) != shape:
            return None
        return self.tokens.to(k.device)

    def _real(self, q: Tensor, mask: Mask, placement: Placement) -> Tensor | None:
        given = self.real_queries(q)
        if given is not None:
            return given
        # the padding of the keys says nothing about queries of another sequence
        unknown = placement.axis != "shared" and mask.keys is not None
        return q.new_ones(q.shape[0], q.shape[2], dtype=torch.bool) if unknown else None


def is_attention(name: str, module: nn.Module) -> bool:
    """Whether a module is attention by its name or that of its class."""
    words = f"{name} {type(module).__name__}".lower()
    return isinstance(module, nn.MultiheadAttention) or "attention" in words or "attn" in words


def is_same_data(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers."""
    if one is other:
        return True
    if one.is_nested or other.is_nested or one.shape != other.shape:
        return False
    is_view = one.data_ptr() == other.data_ptr() and one.stride() == other.stride()
    return is_view or torch.equal(one, other)


def _projection_role(name: str, module: nn.Module) -> str | None:
    """Whether a module projects queries ("q") or keys ("k"), by name; norms do not."""
    words = set(name.lower().split("_"))
    weight = getattr(module, "weight", None)
    is_norm = isinstance(weight, torch.Tensor) and weight.ndim < 2
    if is_norm or words & POSITION_NAMES:
        return None
    roles = [role for role, names in (("q", QUERY_NAMES), ("k", KEY_NAMES)) if words & names]
    return roles[0] if len(roles) == 1 else None


def _may_attend(forward: Forward) -> bool:
    """Whether a module called attention can attend: a norm or a single projection cannot."""
    matrices = [weight for weight in forward.module.parameters() if weight.ndim > 1]
    return len(matrices) > 1 and not BESIDE.search(forward.name)


def _misfit(forward: Forward, heads: int, extra_keys: int) -> str | None:
    """Why a call does not fit the module that made it; None if it does."""
    if SAMPLED.search(type(forward.module).__name__):
        return "it attends from a sample of its queries, reordered"
    counts = _head_counts(forward.module)
    if counts and heads not in counts:
        several = " or ".join(str(count) for count in sorted(counts))
        return f"its weights have {heads} heads, and the module has {several}"
    sinks = [
        name for name, value in forward.module.named_parameters(recurse=False) if "sink" in name
    ]
    if sinks and not extra_keys:
        return f"it has learned sinks (`{sinks[0]}`) that are not part of its softmax"
    return None


def _hides_keys(mask: Mask) -> bool:
    """Whether some keys are hidden from every query, as padding is."""
    rules = [] if mask.pairs is None else [mask.pairs]
    rules += [] if mask.bias is None else [mask.bias > HIDING]
    return any(not bool(rule.any(dim=2).any(dim=1).all()) for rule in rules)


def _head_counts(module: nn.Module) -> set[int]:
    config = getattr(module, "config", None)
    return _counts(module) or (_counts(config) if config is not None else set())


def _counts(owner: Any) -> set[int]:
    """Numbers of heads among the attributes of a module or a configuration."""
    named = [value for name, value in vars(owner).items() if HEAD_COUNT.search(name)]
    return {
        value
        for value in named
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
    }


def _sizes(call: Call) -> tuple[int, int]:
    return (0, 0) if call.look is None else (call.look.queries, call.look.positions)


def _is_square(call: Call) -> bool:
    queries, keys = _sizes(call)
    return queries == keys


def _is_same_call(one: Call, other: Call) -> bool:
    mine, its = one.look, other.look
    if mine is None or its is None or type(mine) is not type(its) or mine.scale != its.scale:
        return False
    if not (_is_equal(mine.q, its.q) and _is_equal(mine.k, its.k)):
        return False
    return all(
        _is_equal(getattr(mine.mask, name), getattr(its.mask, name)) for name in vars(mine.mask)
    )


def _is_equal(one: Any, other: Any) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return torch.equal(one, other) if both else one is other or (one == other) is True


def _plain(path: str) -> str:
    for wrapper in WRAPPERS:
        path = path.replace(wrapper, "").removesuffix(wrapper[:-1]).removesuffix(".")
    return path

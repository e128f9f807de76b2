"""Record attention calls of a model, with the module that makes them.

hooks.py calls the `Recorder` whenever a module of the model starts or ends and, through
attention_functions.py, whenever a torch function computes attention. Attention that cannot be
measured correctly is refused: its module and the reason are noted in `Capture.refusals`. Calls of
transformers modules are checked more strictly, because their code varies: they must fit the number
of heads, and be the complete attention of the module. The innermost module is the one whose
`forward` started last and is still running.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.capture.attention_call import HIDING_BIAS, AttentionCall
from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.dense_weights import DenseAttentionCall
from neural.capture.placement import TWO_SEQUENCES, CacheUpdate, Placement, place_queries
from neural.capture.softmax_calls import SoftmaxCall, WeightTracker
from neural.capture.tensor_copies import compact_tensor
from neural.capture.threads import remember_thread
from neural.nn.checks import is_finite
from neural.nn.lazy_torch import nn, torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.nn.mechanism import Mechanism

WRAPPER_PREFIXES = ("_orig_mod.", "_checkpoint_wrapped_module.")
"""Path components that torch adds for compiled and checkpointed modules."""
HUGGING_FACE_PREFIXES = ("transformers.", "transformers_modules.")
CROSS_ATTENTION_NAME = re.compile(
    r"^cross$|cross_?(attn|attention|mha)|encoder_attn|enc(oder)?_?dec(oder)?_?(attn|attention)"
    r"|(src|source|context|memory)_?(attn|attention)",
    re.IGNORECASE,
)
"""Names of cross-attention modules."""
NON_ATTENTION_NAME = re.compile(r"^(pre|post)_|norm|dropout|out(put)?$|_hc$", re.IGNORECASE)
"""Names of modules next to attention that do not attend; `attn_hc` is a hyper-connection."""
SAMPLED_ATTENTION_CLASS = re.compile("ProbSparse")
"""Classes that attend from a sample of the queries only, in another order (Informer)."""
QUERY_NAMES, KEY_NAMES = {"q", "query", "queries", "wq"}, {"k", "key", "keys", "wk", "kv", "wkv"}
"""Words in the names of query and key projections."""
POSITION_NAMES = {"pos", "position", "rel", "relative"}
"""Words in the names of projections of relative positions."""
HEAD_COUNT_ATTRIBUTE = re.compile(
    r"(^|_)(n|num)_(?!k(ey_)?v)(\w+_)?heads?$|^(encoder|decoder)_attention_heads$|^n?heads?$"
)
"""Attributes of modules and configurations that give the number of query heads."""


@dataclass(eq=False)
class ModuleForward:
    """One run of a module's `forward`, and the attention recorded in it."""

    module: nn.Module
    path: str
    calls: list[CapturedCall] = field(default_factory=list)
    softmax_calls: list[SoftmaxCall] = field(default_factory=list)
    """Softmax calls whose product with values has not happened yet."""
    cache_update: CacheUpdate | None = None
    """Last update of a transformers key/value cache in this run."""
    projection_inputs: dict[str, list[Tensor]] = field(default_factory=dict)
    """Inputs of the query ("q") and key ("k") projections."""
    refusal: str | None = None
    """Why the attention of this module is not measured; None if it is."""
    weak_refusal: str | None = None
    """A less specific reason, reported only if `refusal` is None."""
    is_silent: bool = False
    """Whether calls in this run are ignored; see `Recorder.is_silent`."""
    recognised_before: int = 0
    """Number of calls and refusals of the whole capture before this run."""

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
        return type(self.module).__module__.startswith(HUGGING_FACE_PREFIXES)

    def projected_queries(self, queries: int) -> int | None:
        """Length of the sequence that was projected to queries; None if unknown.

        A module may attend from only `queries` positions of a longer sequence. The axes of the
        projection's input may have any order: if one has the size `queries`, that is the length.
        """
        inputs = [tensor for tensor in self.projection_inputs.get("q", ()) if tensor.ndim == 3]
        if not inputs or any(queries in tensor.shape for tensor in inputs):
            return queries if inputs else None
        return inputs[0].shape[1]

    @property
    def folded_heads(self) -> int:
        """Number of heads in the first axis of (B · H, Q, K), as some transformers modules write.

        1 if it is not known.
        """
        counts = _find_head_counts(self.module) if self.is_hugging_face else set()
        return counts.pop() if len(counts) == 1 else 1


class Recorder:
    """Collects attention calls in a `Capture`, and tracks which modules are running.

    `tokens`: token ids of the model's input. `real`: True for positions that are not padding.
    """

    def __init__(
        self,
        model: nn.Module,
        capture: Capture,
        tokens: Int[Tensor, "B T"] | None = None,
        real: Bool[Tensor, "B T"] | None = None,
    ) -> None:
        self.model, self.capture, self.tokens, self.real = model, capture, tokens, real
        self.modules = {
            id(module): (strip_wrappers(path), module) for path, module in model.named_modules()
        }
        """By id: path without wrappers, and the module (kept alive, so that no id is reused)."""
        self.running: list[ModuleForward] = []
        """Modules whose `forward` is running, the innermost last."""
        self.weight_tracker = WeightTracker()
        self.cache_updates: list[CacheUpdate] = []
        """Cache updates of the forward pass that is running."""
        self.is_here = remember_thread()
        """Whether the present thread is the one whose calls are recorded."""
        self.has_run = False
        """Whether any module of the model has run in this thread."""
        self.has_run_elsewhere = False
        """Whether any module of the model has run in another thread."""
        self.suspected_paths: list[str] = []
        """Modules with a softmax that looks like attention and was not recorded."""
        self.unrecognised: dict[str, str] = {}
        """Modules named attention that ran without any recognised call: path → class name."""
        self.latest_calls: dict[str, AttentionCall] = {}
        """Last call of each module, by path."""
        self._nesting = 0
        """Number of `nested` blocks around the current line."""

    @property
    def path(self) -> str:
        """Path of the innermost running module of the model."""
        return self.running[-1].path if self.running else ""

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Record nothing inside the block: it computes a call that is already recorded."""
        self._nesting += 1
        try:
            yield
        finally:
            self._nesting -= 1

    @property
    def is_silent(self) -> bool:
        """Whether calls are ignored, because they are part of a call that is already recorded.

        That is so inside `nested`, and if activation checkpointing repeats a forward pass during
        the backward pass. Outside of a backward pass, torch's id of the current graph task is −1.
        """
        return self._nesting > 0 or torch._C._current_graph_task_id() != -1

    def enter_module(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Called before the `forward` of a module of the model."""
        self.has_run = True
        forward = ModuleForward(module, self.modules[id(module)][0], is_silent=self.is_silent)
        forward.recognised_before = self.recognised_count
        role = _projection_role(forward.name, module) if self.running else None
        if role is not None and args and isinstance(args[0], torch.Tensor):
            self.running[-1].projection_inputs.setdefault(role, []).append(args[0])
        self.running.append(forward)

    def leave_module(self) -> None:
        """Called after the `forward` of the innermost module: check what was recorded in it."""
        forward = self.running.pop()
        if not self.running:
            self.cache_updates.clear()
        for call in forward.softmax_calls:
            self.weight_tracker.drop(call)
        if forward.is_silent:
            return
        if forward.is_hugging_face:
            self._check_calls(forward)
        elif forward.refusal is not None:
            self.capture.refusals[forward.path] = forward.refusal
        # the outermost of nested modules that are named attention
        is_outermost = forward.is_attention and not any(
            outer.is_attention for outer in self.running
        )
        if (
            is_outermost
            and _can_attend(forward)
            and self.recognised_count == forward.recognised_before
        ):
            self.unrecognised[forward.path] = type(forward.module).__name__

    def note_cache_update(self, update: CacheUpdate) -> None:
        """Called when the innermost module has updated a cache."""
        self.running[-1].cache_update = update
        self.cache_updates.append(update)

    @property
    def has_edits(self) -> bool:
        """Whether `edit_output` may change outputs; see `InterventionRecorder` (intervene.py)."""
        return False

    def needs_record(self, path: str) -> bool:
        """Whether the arguments of the present call of the module at `path` are recorded."""
        return True

    def edit_output(
        self,
        output: Float[Tensor, "B H Q D"],
        get_values: Callable[[], Tensor],
        path: str | None = None,
    ) -> Float[Tensor, "B H Q D"]:
        """Called with the output of the heads after each recorded call; returns what replaces it.

        `get_values` returns the values (B, G, K, D). `path` is that of the innermost module if None.
        A recorder that only watches returns the same tensor.
        """
        return output

    def refuse(self, reason: str) -> None:
        """Do not measure the attention of the innermost module; the first reason is kept."""
        self.running[-1].refusal = self.running[-1].refusal or reason

    def is_cross_attention(self) -> bool:
        """Whether queries and keys come from two sequences in the innermost module.

        Decided by the inputs of the query and key projections, and by names if those are unknown.
        """
        modules = list(reversed(self.running))
        # the innermost module and the attention modules around it
        depth = next(
            (depth for depth, forward in enumerate(modules) if not forward.is_attention),
            len(modules),
        )
        modules = modules[: max(1, depth)]
        for forward in modules:
            queries, keys = (forward.projection_inputs.get(role, ()) for role in ("q", "k"))
            if queries and keys:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    return not any(is_same_data(q, k) for q in queries for k in keys)
        return any(
            CROSS_ATTENTION_NAME.search(name)
            for forward in modules
            for name in (forward.name, type(forward.module).__name__)
        )

    def place_queries(
        self, queries: int, k: Float[Tensor, "B G K D"], visible: Tensor | None
    ) -> Placement:
        """Find the positions of a call's queries among its keys, in the innermost module.

        `visible` (B, H, Q, K): the keys that each query may see; None for all.
        """
        forward = self.running[-1] if self.running else None
        update = None if forward is None else forward.cache_update
        if update is None:
            # a layer may share the keys that another layer has cached in this forward pass
            sizes = queries, k.shape[2]
            update = next((other for other in self.cache_updates if other[:2] == sizes), None)
        return place_queries(
            queries,
            k,
            is_cross=self.is_cross_attention(),
            visible=visible,
            update=update,
            previous=self.latest_calls.get(self.path),
            projected_length=None if forward is None else forward.projected_queries(queries),
        )

    def record_mechanism(
        self,
        path: str,
        mechanism: Mechanism,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None,
        *,
        is_cross: bool,
    ) -> None:
        """Record a call of a mechanism of `neural`.

        If its weights are a softmax of dot products under some mask, that softmax is recorded;
        otherwise the call keeps the mechanism, which computes dense weights (dense_weights.py).
        A mechanism (nn/mechanism.py) is the function from q and k to weights. `extra` is the output
        of its learned module, if it has one; `is_cross`: q and k come from two sequences.
        With masks of `neural`, the last query is at the last key.
        """
        with torch._C.DisableTorchFunction(), torch.no_grad():
            softmax_mask = mechanism.softmax_mask(q, k, mask, extra)
        keys = k.shape[2]
        placement = (
            Placement("keys", keys, note=TWO_SEQUENCES)
            if is_cross
            else Placement("queries_and_keys", keys)
        )
        if softmax_mask is None:
            self.record_call(path, q, k, mask, placement, mechanism=mechanism, extra=extra)
        else:
            self.record_call(path, q, k, softmax_mask, placement)

    def record_call(
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
        """Record a call; `k` has no empty cache slots.

        `mechanism` and `extra` as in `DenseAttentionCall`, others as in `AttentionCall`.
        """
        forward = self.running[-1] if self.running else None
        if forward is not None and forward.is_hugging_face:
            reason = _find_mismatch(forward, q.shape[1], extra_keys)
            is_unknown = placement.known_positions == "none" and self.real_queries(q) is None
            if is_unknown and q.shape[2] > 1 and _hides_keys(mask):
                forward.weak_refusal = "which of its queries are padding is not known: pass `real`"
            if reason is not None:
                self.refuse(reason)
                return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            q, k, attention = compact_tensor(q), compact_tensor(k), None
            if is_finite(q) and is_finite(k):
                fields = {
                    "scale": scale,
                    "query_offset": placement.query_offset,
                    "known_positions": placement.known_positions,
                    "extra_keys": extra_keys,
                    "tokens": self._matching_tokens(k, placement, extra_keys),
                    "has_logits": has_logits,
                    "real": self.query_validity(q, mask, placement) if real is None else real,
                }
                if mechanism is None:
                    attention = AttentionCall(q, k, mask, **fields)
                else:
                    extra = None if extra is None else extra.detach()
                    attention = DenseAttentionCall(
                        q, k, mask, **fields, mechanism=mechanism, extra=extra
                    )
            names = self.capture.measure_names
            call = CapturedCall(path, q.shape[1], attention, names, placement.note)
            self.capture.calls.append(call)
            if attention is not None:
                self.latest_calls[path] = attention
            if forward is not None:
                forward.calls.append(call)

    @contextmanager
    def reenter_module(self, call: SoftmaxCall) -> Iterator[None]:
        """Make the module of a softmax call the innermost one inside the block.

        Also removes the call from the pending ones of that module.
        """
        running = self.running
        depth = next(i for i, forward in enumerate(running) if call in forward.softmax_calls)
        running[depth].softmax_calls.remove(call)
        self.running = running[: depth + 1]
        try:
            yield
        finally:
            self.running = running

    @property
    def recognised_count(self) -> int:
        """Number of calls and refusals so far."""
        return len(self.capture.calls) + len(self.capture.refusals)

    def _check_calls(self, forward: ModuleForward) -> None:
        """Drop the calls of a transformers module and refuse it, if a call does not fit it.

        That is so if a call was refused, if a softmax had no product with values, or if the module
        computes its attention in chunks, each of which is only a part.
        """
        repeated = [
            call
            for index, call in enumerate(forward.calls)
            if any(is_same_call(call, earlier) for earlier in forward.calls[:index])
        ]
        self._drop_calls(repeated)  # the same weights applied to other values are recorded once
        calls = [call for call in forward.calls if not any(call is other for other in repeated)]
        reason = forward.refusal
        if reason is None and forward.softmax_calls:
            shape = tuple(forward.softmax_calls[0].scores.shape)
            reason = f"no product of its softmax over {shape} with values was recognised"
        if reason is None and len(calls) > 1 and not all(_is_square(call) for call in calls):
            shapes = ", ".join(
                f"{queries} × {keys}" for queries, keys in map(_query_key_sizes, calls[:3])
            )
            reason = f"it computes attention in {len(calls)} chunks, of queries × keys {shapes}"
        reason = reason or forward.weak_refusal
        if reason is not None and (calls or not NON_ATTENTION_NAME.search(forward.name)):
            self._drop_calls(calls)
            self.capture.refusals[forward.path] = reason

    def _drop_calls(self, calls: list[CapturedCall]) -> None:
        dropped = {id(call) for call in calls}
        self.capture.calls[:] = [call for call in self.capture.calls if id(call) not in dropped]

    def real_queries(self, q: Float[Tensor, "B H Q D"]) -> Bool[Tensor, "B Q"] | None:
        """The caller's padding mask, if it fits these queries."""
        fits = self.real is not None and tuple(self.real.shape) == (q.shape[0], q.shape[2])
        return self.real.to(q.device) if fits and self.real is not None else None

    def _matching_tokens(self, k: Tensor, placement: Placement, extra_keys: int) -> Tensor | None:
        """The caller's token ids, if they are those of the keys that are positions."""
        shape = k.shape[0], k.shape[2] - extra_keys
        if (
            placement.known_positions != "queries_and_keys"
            or self.tokens is None
            or tuple(self.tokens.shape) != shape
        ):
            return None
        return self.tokens.to(k.device)

    def query_validity(self, q: Tensor, mask: Mask, placement: Placement) -> Tensor | None:
        """True for queries that are not padding, (B, Q); None if `mask.keys` shows it.

        The mask of cross-attention does not show the padding of its queries. It is that of the
        self-attention of the same block, which is an element of a list or the model itself.
        """
        real = self.real_queries(q)
        if real is not None or placement.known_positions == "queries_and_keys":
            return real
        for forward in reversed(self.running):
            if forward.name and not forward.name.isdigit():
                continue
            depth = forward.path.count(".") + bool(forward.path)
            for path, call in reversed(self.latest_calls.items()):
                is_inside = not forward.path or path.startswith(f"{forward.path}.")
                is_own = is_inside and (forward.name or path.count(".") == depth)
                real = call.valid_queries() if is_own and call.real is None else None
                if real is not None and tuple(real.shape) == (q.shape[0], q.shape[2]):
                    return real
        # the padding of the keys does not apply to queries of another sequence
        is_unknown = mask.keys is not None
        return q.new_ones(q.shape[0], q.shape[2], dtype=torch.bool) if is_unknown else None


def is_attention(name: str, module: nn.Module) -> bool:
    """Whether a module is attention by its name or that of its class."""
    words = f"{name} {type(module).__name__}".lower()
    return isinstance(module, nn.MultiheadAttention) or "attention" in words or "attn" in words


def is_same_data(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors hold the same numbers; False for nested tensors."""
    if first is second:
        return True
    if first.is_nested or second.is_nested or first.shape != second.shape:
        return False
    is_view = first.data_ptr() == second.data_ptr() and first.stride() == second.stride()
    return is_view or torch.equal(first, second)


def _projection_role(name: str, module: nn.Module) -> str | None:
    """What a module projects, by its name: "q" for queries, "k" for keys, None for neither."""
    words = set(name.lower().split("_"))
    weight = getattr(module, "weight", None)
    is_norm = isinstance(weight, torch.Tensor) and weight.ndim < 2
    if is_norm or words & POSITION_NAMES:
        return None
    roles = [role for role, names in (("q", QUERY_NAMES), ("k", KEY_NAMES)) if words & names]
    return roles[0] if len(roles) == 1 else None


def _can_attend(forward: ModuleForward) -> bool:
    """Whether a module called attention can attend: a norm or a single projection cannot."""
    matrices = [weight for weight in forward.module.parameters() if weight.ndim > 1]
    return len(matrices) > 1 and not NON_ATTENTION_NAME.search(forward.name)


def _find_mismatch(forward: ModuleForward, heads: int, extra_keys: int) -> str | None:
    """Why a call does not fit the module that made it; None if it does."""
    if SAMPLED_ATTENTION_CLASS.search(type(forward.module).__name__):
        return "it attends from a sample of its queries, reordered"
    head_counts = _module_head_counts(forward.module)
    if head_counts and heads not in head_counts:
        expected = " or ".join(str(count) for count in sorted(head_counts))
        return f"its weights have {heads} heads, and the module has {expected}"
    sink_names = [
        name for name, _ in forward.module.named_parameters(recurse=False) if "sink" in name
    ]
    if sink_names and not extra_keys:
        return f"it has learned sinks (`{sink_names[0]}`) that are not part of its softmax"
    return None


def _hides_keys(mask: Mask) -> bool:
    """Whether some keys are hidden from every query, as padding is."""
    pair_masks = [] if mask.pairs is None else [mask.pairs]
    pair_masks += [] if mask.bias is None else [mask.bias > HIDING_BIAS]
    return any(not bool(visible.any(dim=2).any(dim=1).all()) for visible in pair_masks)


def _module_head_counts(module: nn.Module) -> set[int]:
    """Numbers of heads by the attributes of a module, or else of its configuration."""
    config = getattr(module, "config", None)
    return _find_head_counts(module) or (_find_head_counts(config) if config is not None else set())


def _find_head_counts(owner: Any) -> set[int]:
    """Numbers of heads among the attributes of a module or a configuration."""
    head_counts = [
        value for name, value in vars(owner).items() if HEAD_COUNT_ATTRIBUTE.search(name)
    ]
    return {
        value
        for value in head_counts
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
    }


def _query_key_sizes(call: CapturedCall) -> tuple[int, int]:
    """Number of queries, and of keys that are positions; zeros for a call that is not finite."""
    return (0, 0) if call.attention is None else (call.attention.queries, call.attention.positions)


def _is_square(call: CapturedCall) -> bool:
    queries, keys = _query_key_sizes(call)
    return queries == keys


def is_same_call(first: CapturedCall, second: CapturedCall) -> bool:
    """Whether two calls have equal queries, keys, scale and mask, so equal weights."""
    first_call, second_call = first.attention, second.attention
    if (
        first_call is None
        or second_call is None
        or type(first_call) is not type(second_call)
        or first_call.scale != second_call.scale
    ):
        return False
    if not (_is_equal(first_call.q, second_call.q) and _is_equal(first_call.k, second_call.k)):
        return False
    return all(
        _is_equal(getattr(first_call.mask, name), getattr(second_call.mask, name))
        for name in vars(first_call.mask)
    )


def _is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return torch.equal(first, second)
    return first is second or (first == second) is True


def strip_wrappers(path: str) -> str:
    """Path of a module without the components that compiling and checkpointing add."""
    for wrapper in WRAPPER_PREFIXES:
        path = path.replace(wrapper, "").removesuffix(wrapper[:-1]).removesuffix(".")
    return path

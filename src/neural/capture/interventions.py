"""Changes of attention heads, for `neural.intervene`: zero, scale, mean, patch, pattern.

    with intervene(model, zero("L1 h3"), scale(["L2 h0", "L2 h1"], 0.5)):
        model(ids)

The output of a head is z = weights @ values, before the output projection. All changes but
`replace_pattern` replace z itself; `replace_pattern` replaces the weights and computes z again, so
the values stay. A head is addressed as `L1 h3`: layer 1, head 3, both counted from 0. Layers are the
attention calls of one forward pass, in the order in which `neural.watch` lists them. Changes of
whole layers, MLPs and the residual stream are in blocks.py.

Axes: B examples, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.core.errors import NeuralError
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor, nn

    from neural.capture.attention_call import AttentionCall
    from neural.capture.attention_maps import AttentionMaps

    HeadAddress = str | tuple[int, int] | tuple[str, int]
    Heads = HeadAddress | Sequence[HeadAddress]
    Rows = Sequence[int] | slice | Tensor | None

HEAD_NAME = re.compile(r"^\s*L(\d+)(?:\s*h|\s*[.:/]\s*h?|\s)\s*(\d+)\s*$", re.IGNORECASE)
"""`L1 h3`; also `L1h3`, `l1.3` and `L1 3`, but not `L13`, which is a layer."""
PATTERNS = ("uniform", "diagonal", "previous")
ALL_HEADS = "all"


class InterventionError(NeuralError, ValueError):
    """An intervention does not fit the model or the input; the message says why."""


@dataclass(frozen=True)
class Head:
    """Address of a head: the layer is an index of the forward pass, or the path of a module."""

    layer: int | str
    head: int

    def __str__(self) -> str:
        if isinstance(self.layer, str):
            return f"`{self.layer}` h{self.head}"
        return f"L{self.layer} h{self.head}"


def parse_head(address: HeadAddress | Head) -> Head:
    """Read `"L1 h3"`, `(1, 3)` or `("path.of.module", 3)`."""
    if isinstance(address, Head):
        return address
    if isinstance(address, str):
        match = HEAD_NAME.match(address)
        if match is None:
            raise InterventionError(
                f"`{address}` is not a head: write `L1 h3` (layer 1, head 3, counted from 0)"
            )
        return Head(int(match[1]), int(match[2]))
    if isinstance(address, tuple) and len(address) == 2:
        layer, head = address
        is_layer = isinstance(layer, str) or (isinstance(layer, int) and layer >= 0)
        if is_layer and isinstance(head, int) and head >= 0:
            return Head(layer, head)
    raise InterventionError(f"{address!r} is not a head: write `L1 h3`, (1, 3) or (path, 3)")


def parse_heads(heads: Heads | Head | Sequence[Head]) -> list[Head] | None:
    """Addresses of heads; None for "all"."""
    if isinstance(heads, str) and heads == ALL_HEADS:
        return None
    is_pair = isinstance(heads, tuple) and len(heads) == 2 and isinstance(heads[1], int)
    if isinstance(heads, str | Head) or is_pair:
        return [parse_head(heads)]  # type: ignore[arg-type]
    return [parse_head(head) for head in heads]  # type: ignore[union-attr]


@dataclass(frozen=True)
class HeadCall:
    """One attention call as an intervention sees it."""

    layer: int
    path: str
    output: Float[Tensor, "B H Q D"]
    """What the heads write, before the output projection."""
    get_values: Callable[[], Tensor]
    """The values (B, G, K, D) of all keys; G divides H."""
    attention: AttentionCall | None = None
    """Queries, keys and mask; only for interventions with `needs_weights`."""
    part: int = 0
    """0; 1 and more for further calls of the layer, with the same weights and other values."""

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.output.shape[1]

    def compute_maps(self) -> AttentionMaps:
        """The weights of the call."""
        if self.attention is None:
            raise InterventionError(f"the attention weights of `{self.path}` are not known")
        return self.attention.compute_maps()

    def compute_weights(self) -> Float[Tensor, "B H Q K"]:
        """Weights of the keys that are positions; those of a signed mechanism with their sign."""
        maps = self.compute_maps()
        weights = maps.weights if maps.signed_weights is None else maps.signed_weights
        return weights[..., : maps.positions]

    def expand_values(self) -> Float[Tensor, "B H K D"]:
        """The values of each head: key heads are repeated for the query heads that share them."""
        values = self.get_values()
        if self.attention is not None:
            values = values[:, :, : self.attention.positions]
        values = values.expand(self.output.shape[0], *values.shape[1:])
        return values.repeat_interleave(self.heads // values.shape[1], dim=1)


@dataclass
class LayerOutputs:
    """Head outputs of one attention call."""

    path: str
    output: Float[Tensor, "B H Q D"]
    values: Float[Tensor, "B H K D"]
    """Key heads are repeated for the query heads that share them."""
    weights: Float[Tensor, "B H Q K"] | None = None
    real: Bool[Tensor, "B Q"] | None = None
    """True for queries that are not padding; None if none is."""
    further_parts: list[LayerOutputs] = field(default_factory=list)
    """The same heads applied to other values in the same pass, as in differential attention."""


@dataclass
class HeadOutputs:
    """Head outputs of all attention calls of one forward pass, by layer.

        outputs = neural.record_head_outputs(model, ids)
        outputs[1].output[:, 3]  # what L1 h3 writes: (examples, queries, width)

    `outputs[1].path` is the name of the attention module.
    """

    layers: list[LayerOutputs] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: int) -> LayerOutputs:
        return self.layers[layer]


class Intervention:
    """Base class. A change of heads overrides `apply`, a change of modules `attach`."""

    needs_weights = False
    """Whether `apply` uses the attention weights of the call."""
    unmatched_error: type[Exception] = InterventionError
    """Raised with the text of `describe_unmatched`."""

    def targets(self, layer: int, path: str) -> bool:
        """Whether the attention call is one that this intervention may change."""
        return False

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """The new output of all heads; `call.output` itself if nothing changes."""
        return call.output

    def attach(self, model: nn.Module) -> AbstractContextManager[Any]:
        """A block inside which hooks of this intervention are on the model."""
        return nullcontext()

    def describe_unmatched(self, layers: Sequence[str]) -> str | None:
        """Why no attention call was changed; None if some was. `layers`: paths by layer."""
        return None


class HeadIntervention(Intervention):
    """Replaces the outputs of some heads, in some examples and at some positions.

    `heads`: an address, several, or "all". `examples` and `positions`: indices or a boolean mask of
    the batch and of the queries; all if None.
    """

    def __init__(self, heads: Heads, *, examples: Rows = None, positions: Rows = None) -> None:
        self.heads = parse_heads(heads)
        self.examples, self.positions = examples, positions
        self._matched: set[Head] = set()

    def targets(self, layer: int, path: str) -> bool:
        """Whether one of the heads is in the layer."""
        return self.heads is None or any(head.layer in (layer, path) for head in self.heads)

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Replace the outputs of the heads by those of `compute`."""
        indices = self._select_heads(call)
        if not indices:
            return call.output
        new_output = self.compute(call, indices).to(call.output.dtype)
        index = torch.tensor(indices, device=call.output.device)
        old_output = call.output.index_select(1, index)
        new_output = new_output.expand(old_output.shape)
        is_changed = self._select_rows(call)
        if is_changed is not None:
            new_output = torch.where(is_changed, new_output, old_output)
        return call.output.index_copy(1, index, new_output)

    def compute(self, call: HeadCall, heads: list[int]) -> Float[Tensor, "B n Q D"]:
        """New outputs of `heads`, broadcastable to (B, n, Q, D)."""
        raise NotImplementedError

    def describe_unmatched(self, layers: Sequence[str]) -> str | None:
        """Name the heads that no call had."""
        missing = [head for head in self.heads or () if head not in self._matched]
        if not missing:
            return None
        last = len(layers) - 1
        there_are = (
            f"the model made {len(layers)} attention calls, L0 to L{last}"
            if layers
            else "the model made no attention call that can be changed"
        )
        paths = ", ".join(f"`{path}`" for path in layers[:3])
        names = ", ".join(str(head) for head in missing)
        return f"there is no head {names}: {there_are}" + (f" ({paths} …)" if layers else "")

    def _select_heads(self, call: HeadCall) -> list[int]:
        if self.heads is None:
            return list(range(call.heads))
        matching = [head for head in self.heads if head.layer in (call.layer, call.path)]
        for head in matching:
            if head.head >= call.heads:
                raise InterventionError(
                    f"there is no head {head}: L{call.layer} (`{call.path}`) has {call.heads} "
                    f"heads, h0 to h{call.heads - 1}"
                )
        self._matched.update(matching)
        return [head.head for head in matching]

    def _select_rows(self, call: HeadCall) -> Bool[Tensor, "B 1 Q 1"] | None:
        """True where the output changes; None if everywhere."""
        if self.examples is None and self.positions is None:
            return None
        batch, _, queries, _ = call.output.shape
        device = call.output.device
        examples = build_row_mask(self.examples, batch, "examples", device)
        positions = build_row_mask(self.positions, queries, "positions", device)
        return examples[:, None, None, None] & positions[None, None, :, None]


def to_index(
    rows: Sequence[int] | Tensor, length: int, subject: str, there_are: str, device: Any = None
) -> Int[Tensor, " n"]:
    """Indices as a tensor; those from −1 to −`length` count from the end, as everywhere in torch.

    InterventionError with `subject`, the wrong index and `there_are` if one is no such integer.
    """
    index = torch.as_tensor(rows, device=device)
    is_wrong = (index != index.long()) | (index < -length) | (index >= length)
    if is_wrong.any():
        wrong = index[is_wrong].flatten()[0].item()
        raise InterventionError(f"{subject} {wrong:g}, but {there_are}")
    return index.long() % max(1, length)  # an empty list is a tensor of floats


def build_row_mask(rows: Rows, length: int, name: str, device: Any) -> Bool[Tensor, " L"]:
    """A boolean mask from indices, a slice or a mask."""
    mask = torch.zeros(length, dtype=torch.bool, device=device)
    index: Any = slice(None) if rows is None else rows
    if not isinstance(index, slice):
        index = torch.as_tensor(list(index) if isinstance(index, range) else index, device=device)
        if index.dtype == torch.bool:
            if tuple(index.shape) != (length,):
                raise InterventionError(
                    f"`{name}` has a mask of {tuple(index.shape)}, but the call has {length} {name}"
                )
        else:
            index = to_index(index, length, f"`{name}` has index", f"the call has {length} {name}")
    mask[index] = True
    return mask


class _Zero(HeadIntervention):
    def compute(self, call: HeadCall, heads: list[int]) -> Tensor:
        return call.output.new_zeros(())


class _Scale(HeadIntervention):
    def __init__(self, heads: Heads, factor: float | Tensor, **rows: Rows) -> None:
        super().__init__(heads, **rows)
        self.factor = factor

    def compute(self, call: HeadCall, heads: list[int]) -> Tensor:
        output = call.output[:, heads]
        shape = tuple(self.factor.shape) if isinstance(self.factor, torch.Tensor) else ()
        try:
            fits = torch.broadcast_shapes(shape, output.shape) == output.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise InterventionError(
                f"`factor` is a tensor {shape}, but L{call.layer} has (examples, heads, positions, "
                f"width) {tuple(output.shape)}: the heads of an address are counted by layer"
            )
        return output * self.factor


class _ReplaceByMean(HeadIntervention):
    def __init__(
        self, heads: Heads, reference: HeadOutputs, *, per_position: bool = False, **rows: Rows
    ) -> None:
        super().__init__(heads, **rows)
        self.reference, self.per_position = reference, per_position
        self._means: dict[tuple[int, int], Tensor] = {}
        """By layer and part of the call."""

    def compute(self, call: HeadCall, heads: list[int]) -> Tensor:
        key = call.layer, call.part
        if key not in self._means:
            self._means[key] = self._average(call)
        means = self._means[key]
        if self.per_position and means.shape[1] != call.output.shape[2]:
            raise InterventionError(
                f"the mean of every position needs inputs of {means.shape[1]} positions, as the "
                f"reference has, not {call.output.shape[2]}; use per_position=False"
            )
        return means[heads].unsqueeze(0)

    def _average(self, call: HeadCall) -> Float[Tensor, "H q D"]:
        layer = _get_layer(self.reference, call)
        output = widen(layer.output)
        if layer.real is None:
            return output.mean(dim=0) if self.per_position else output.mean(dim=(0, 2))[:, None]
        real = layer.real[:, None, :, None].to(output)
        dims = (0,) if self.per_position else (0, 2)
        count = real.sum(dim=dims, keepdim=True).clamp(min=1)
        mean = (output * real).sum(dim=dims, keepdim=True) / count
        return mean[0]


class _Patch(HeadIntervention):
    def __init__(
        self,
        heads: Heads,
        source: HeadOutputs,
        *,
        source_rows: Sequence[int] | Tensor | None = None,
        **rows: Rows,
    ) -> None:
        super().__init__(heads, **rows)
        self.source, self.source_rows = source, source_rows

    def compute(self, call: HeadCall, heads: list[int]) -> Tensor:
        output = _get_layer(self.source, call).output
        if self.source_rows is not None:
            there_are = f"the source has {len(output)}"
            rows = to_index(
                self.source_rows, len(output), "`rows` names example", there_are, output.device
            )
            output = output.index_select(0, rows)
        expected = (call.output.shape[0], *call.output.shape[2:])
        actual = (output.shape[0], *output.shape[2:])
        if output.shape[0] == 1:
            actual = expected[0], *actual[1:]
        if actual != expected:
            raise InterventionError(
                f"head outputs of (examples, positions, width) {actual} cannot replace those of "
                f"{expected} in L{call.layer}: both inputs need the same number of tokens"
            )
        return output[:, heads]


class _ReplacePattern(HeadIntervention):
    needs_weights = True

    def __init__(self, heads: Heads, pattern: str | Tensor | HeadOutputs, **rows: Rows) -> None:
        super().__init__(heads, **rows)
        if isinstance(pattern, str) and pattern not in PATTERNS:
            raise InterventionError(
                f"there is no pattern `{pattern}`: use {', '.join(PATTERNS)}, a tensor (Q, K), or "
                "recorded head outputs, whose average is used"
            )
        self.pattern = pattern

    def compute(self, call: HeadCall, heads: list[int]) -> Tensor:
        values = widen(call.expand_values()[:, heads])
        weights = self._build_weights(call, heads)
        if weights.shape[-2:] != (call.output.shape[2], values.shape[2]):
            raise InterventionError(
                f"the pattern has {weights.shape[-2]} × {weights.shape[-1]} queries × keys, but "
                f"L{call.layer} has {call.output.shape[2]} × {values.shape[2]}"
            )
        return weights.to(values) @ values

    def _build_weights(self, call: HeadCall, heads: list[int]) -> Float[Tensor, "b n Q K"]:
        if isinstance(self.pattern, HeadOutputs):
            weights = _get_layer(self.pattern, call).weights
            if weights is None:
                raise InterventionError("record the reference with keep_weights=True")
            return widen(weights).mean(dim=0, keepdim=True)[:, heads]
        if not isinstance(self.pattern, str):
            return torch.as_tensor(self.pattern)
        maps = call.compute_maps()
        visible = maps.visible_mask[:, heads, :, : maps.positions]
        # a quotient of integers has the default dtype, 32 bits
        uniform = visible.double() / visible.sum(dim=-1, keepdim=True).clamp(min=1)
        if self.pattern == "uniform":
            return uniform
        if maps.known_positions != "queries_and_keys":
            raise InterventionError(
                f"the pattern `{self.pattern}` needs queries and keys of one sequence, and in "
                f"L{call.layer} they are of two"
            )
        own = maps.query_positions
        target = (own - 1).clamp(min=0) if self.pattern == "previous" else own
        keys = torch.arange(maps.positions, device=visible.device)
        weights = uniform
        # a query that may not see its previous key keeps to itself, else to all that it sees
        for position in (own, target) if self.pattern == "previous" else (own,):
            is_target = (keys == position[:, None]).expand(visible.shape)
            can_see = (is_target & visible).any(dim=-1, keepdim=True)
            weights = torch.where(can_see, is_target.double(), weights)
        return weights


def widen(values: Tensor) -> Tensor:
    """At least 32 bits, for sums."""
    return values.float() if values.element_size() < 4 else values


def _get_layer(outputs: HeadOutputs, call: HeadCall) -> LayerOutputs:
    if not isinstance(outputs, HeadOutputs):
        raise InterventionError(
            f"a {type(outputs).__name__} has no outputs of heads: record them with "
            "neural.record_head_outputs(model, inputs)"
        )
    if call.layer >= len(outputs):
        raise InterventionError(
            f"the recorded outputs have {len(outputs)} layers, so none for L{call.layer}"
        )
    layer = outputs[call.layer]
    if call.part > len(layer.further_parts):
        raise InterventionError(
            f"the recorded outputs of L{call.layer} are of {len(layer.further_parts) + 1} calls, "
            f"and the model makes {call.part + 1} or more"
        )
    layer = layer.further_parts[call.part - 1] if call.part else layer
    if layer.output.shape[1] != call.heads or layer.output.shape[3] != call.output.shape[3]:
        raise InterventionError(
            f"the recorded outputs of L{call.layer} have {layer.output.shape[1]} heads of width "
            f"{layer.output.shape[3]}, and the model {call.heads} of width {call.output.shape[3]}"
        )
    return layer


def zero(heads: Heads, *, examples: Rows = None, positions: Rows = None) -> HeadIntervention:
    """Set the outputs of heads to zero.

        with neural.intervene(model, neural.interventions.zero("L1 h3")):
            logits = model(ids)

    `examples`, `positions`: indices, a slice or a mask of the batch and of the queries; all if
    None.
    """
    return _Zero(heads, examples=examples, positions=positions)


def scale(
    heads: Heads, factor: float | Tensor, *, examples: Rows = None, positions: Rows = None
) -> HeadIntervention:
    """Multiply the outputs of heads; a tensor `factor` is broadcast to (B, heads, Q, D).

        with neural.intervene(model, neural.interventions.scale(["L0 h1", "L1 h3"], 0.5)):
            logits = model(ids)

    `examples`, `positions`: indices, a slice or a mask of the batch and of the queries; all if
    None.
    """
    return _Scale(heads, factor, examples=examples, positions=positions)


def replace_by_mean(
    heads: Heads,
    reference: HeadOutputs,
    *,
    per_position: bool = False,
    examples: Rows = None,
    positions: Rows = None,
) -> HeadIntervention:
    """Replace the outputs of heads by their mean over a reference (`record_head_outputs`).

        clean = neural.record_head_outputs(model, other_ids)
        with neural.intervene(model, neural.interventions.replace_by_mean("L1 h3", clean)):
            logits = model(ids)

    The mean is over examples and positions that are not padding; with `per_position` over examples
    only, which needs inputs of the reference's length.
    """
    return _ReplaceByMean(
        heads, reference, per_position=per_position, examples=examples, positions=positions
    )


def patch(
    heads: Heads,
    source: HeadOutputs,
    *,
    rows: Sequence[int] | Tensor | None = None,
    examples: Rows = None,
    positions: Rows = None,
) -> HeadIntervention:
    """Replace the outputs of heads by those of another forward pass (activation patching).

        clean = neural.record_head_outputs(model, other_ids)
        with neural.intervene(model, neural.interventions.patch("L1 h3", clean)):
            logits = model(ids)

    `source`: from `record_head_outputs`, of other inputs or of another model. `rows`: for each
    example of the batch, the example of the source; a permutation resamples heads from other
    examples. A source of one example is used for all.
    """
    return _Patch(heads, source, source_rows=rows, examples=examples, positions=positions)


def replace_pattern(
    heads: Heads,
    pattern: str | Tensor | HeadOutputs,
    *,
    examples: Rows = None,
    positions: Rows = None,
) -> HeadIntervention:
    """Replace the attention weights of heads; their values stay.

        with neural.intervene(model, neural.interventions.replace_pattern("L1 h3", "uniform")):
            logits = model(ids)

    `pattern`: "uniform" (over the keys that a query may see), "diagonal" (its own position),
    "previous" (the position before), a tensor broadcastable to (B, heads, Q, K), or head outputs
    that were recorded with `keep_weights=True`: the average of their weights.
    """
    return _ReplacePattern(heads, pattern, examples=examples, positions=positions)

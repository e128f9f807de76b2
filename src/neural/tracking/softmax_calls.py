"""Attention written out with a softmax: its weights are followed to their product with values.

A softmax alone does not say what its axes are. In a module called attention it may run over keys,
over chunks of keys, over experts or over classes. It is attention over K keys if its result is
multiplied with K values during the same run of the module. Columns that are cut off before the
product are keys without a value (learned sinks). A softmax without such a product is not measured,
and a message names its module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor

PRODUCTS = {"matmul", "__matmul__", "bmm", "einsum"}
TRANSPOSES = {"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "__get__"}
"""`__get__` is how `Tensor.mT` and its kin arrive."""


@dataclass(eq=False)
class SoftmaxCall:
    """One softmax over the last axis."""

    path: str
    scores: Tensor
    columns: slice | None = None
    """The keys that have values; None until the product is found."""

    @property
    def reordered(self) -> tuple[Tensor, int]:
        """The scores with the keys without a value last, and the number of those."""
        columns = self.columns or slice(0, self.scores.shape[-1])
        extra = self.scores.shape[-1] - (columns.stop - columns.start)
        if not extra:
            return self.scores, 0
        before, after = self.scores[..., : columns.start], self.scores[..., columns.stop :]
        return torch.cat((self.scores[..., columns], before, after), dim=-1), extra


@dataclass(eq=False)
class _Derived:
    """A tensor derived from the result of a softmax."""

    tensor: Tensor
    call: SoftmaxCall
    columns: slice
    is_transposed: bool = False
    """Whether its last two axes are (keys, queries)."""


@dataclass
class WeightTracker:
    """Follows the results of softmax calls, and tensors derived from them.

    Holds these tensors until their call is dropped, so that no id is reused.
    """

    derived: dict[int, _Derived] = field(default_factory=dict)

    def start(self, call: SoftmaxCall, weights: Tensor) -> None:
        """Follow the result of a softmax."""
        self.derived[id(weights)] = _Derived(weights, call, slice(0, weights.shape[-1]))

    def drop(self, call: SoftmaxCall) -> None:
        """Follow it no longer."""
        self.derived = {key: item for key, item in self.derived.items() if item.call is not call}

    def follow(
        self, function: Callable[..., Any], args: Sequence[Any], result: Any
    ) -> SoftmaxCall | None:
        """Inspect a call of a torch function; returns the softmax call whose values it mixes."""
        operands = list(_tensors(args))
        at = next((at for at, tensor in enumerate(operands) if id(tensor) in self.derived), None)
        if at is None:
            return None
        source, name = self.derived[id(operands[at])], getattr(function, "__name__", "")
        if name in PRODUCTS:
            if not _mixes_values(name, args, at, source):
                return None
            source.call.columns = source.columns
            self.drop(source.call)
            return source.call
        if at == 0 and isinstance(result, torch.Tensor) and id(result) not in self.derived:
            derived = _derive(name, source, result)
            if derived is not None:
                self.derived[id(result)] = derived
        return None


def _tensors(args: Sequence[Any]) -> Any:
    for item in args:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _tensors(item)


def _mixes_values(name: str, args: Sequence[Any], at: int, weights: _Derived) -> bool:
    """Whether a product sums over the keys of the weights and keeps their queries."""
    if name != "einsum":
        return at == (1 if weights.is_transposed else 0)
    if not isinstance(args[0], str) or "->" not in args[0]:
        return False
    terms, _, output = args[0].replace(" ", "").partition("->")
    axes = terms.split(",")[at].replace("...", "")
    if len(axes) < 2:
        return False
    queries, keys = axes[-2:]
    if weights.is_transposed:
        queries, keys = keys, queries
    return keys not in output and queries in output


def _derive(name: str, source: _Derived, result: Tensor) -> _Derived | None:
    """Follow weights through a function if queries and keys remain the last two axes."""
    old, new = tuple(source.tensor.shape), tuple(result.shape)
    if len(new) < 2:
        return None
    if name in TRANSPOSES:
        axes, before = result.stride()[-2:], source.tensor.stride()[-2:]
        if (new[-2:], axes) == (old[-2:], before):
            return _Derived(result, source.call, source.columns, source.is_transposed)
        if (new[-2:], axes) == (old[-2:][::-1], before[::-1]):
            return _Derived(result, source.call, source.columns, not source.is_transposed)
        return None
    if new[-2:] == old[-2:] and result.numel() == source.tensor.numel():
        return _Derived(result, source.call, source.columns, source.is_transposed)
    is_cut = new[:-1] == old[:-1] and new[-1] < old[-1] and not source.is_transposed
    if is_cut and result.untyped_storage().data_ptr() == source.tensor.untyped_storage().data_ptr():
        step = source.tensor.stride(-1)
        start = (result.storage_offset() - source.tensor.storage_offset()) // step
        if result.stride() == source.tensor.stride() and 0 <= start <= old[-1] - new[-1]:
            start += source.columns.start
            return _Derived(result, source.call, slice(start, start + new[-1]))
    return None

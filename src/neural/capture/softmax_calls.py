"""Attention that a model's own code computes with a softmax and a product with values.

A softmax alone does not say what its axes are. In a module called attention it may run over keys,
over chunks of keys, over experts or over classes. It is attention over K keys if its result is
multiplied with K values during the same run of the module. So the result, and tensors derived from
it (by dropout, a transpose, a slice), are followed through the torch functions that use them.
Columns that are cut off before the product are keys without a value (learned sinks). A softmax
without such a product is not measured, and a message names its module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

PRODUCT_FUNCTIONS = {"matmul", "__matmul__", "bmm", "einsum"}
"""Names of torch functions that may multiply weights with values."""
TRANSPOSE_FUNCTIONS = {
    "transpose",
    "permute",
    "swapaxes",
    "swapdims",
    "movedim",
    "moveaxis",
    "__get__",
}
"""Names of torch functions that swap axes; `__get__` is that of properties such as `Tensor.mT`."""


class Product(NamedTuple):
    """A product of weights and values."""

    name: str
    """Name of the torch function."""
    args: Sequence[Any]
    operand: int
    """Index of the weights among the tensors."""
    is_transposed: bool
    """Whether the last two axes of the weights are (keys, queries)."""

    @property
    def values(self) -> Tensor:
        """The other tensor."""
        return [*_iter_tensors(self.args)][1 - self.operand]


@dataclass(eq=False)
class SoftmaxCall:
    """One softmax over the last axis."""

    path: str
    """Path of the module that called it."""
    scores: Tensor
    """Input of the softmax, (…, Q, K)."""
    columns: slice | None = None
    """The keys that have values; None until the product is found."""
    product: Product | None = None
    """The product with values; None until it is found."""

    @property
    def reordered_scores(self) -> tuple[Tensor, int]:
        """The scores, with the keys that have no value moved to the end, and their number."""
        columns = self.columns or slice(0, self.scores.shape[-1])
        extra = self.scores.shape[-1] - (columns.stop - columns.start)
        if not extra:
            return self.scores, 0
        before, after = self.scores[..., : columns.start], self.scores[..., columns.stop :]
        return torch.cat((self.scores[..., columns], before, after), dim=-1), extra


@dataclass(eq=False)
class _DerivedWeights:
    """A tensor derived from the result of a softmax."""

    tensor: Tensor
    call: SoftmaxCall
    columns: slice
    """Columns of the softmax that the tensor has."""
    is_transposed: bool = False
    """Whether its last two axes are (keys, queries)."""


@dataclass
class WeightTracker:
    """Follows the results of softmax calls, and tensors derived from them.

    It keeps these tensors alive until `drop`, so that Python does not reuse their ids.
    """

    derived: dict[int, _DerivedWeights] = field(default_factory=dict)
    """By id of the tensor."""

    def start(self, call: SoftmaxCall, weights: Tensor) -> None:
        """Follow the result of a softmax."""
        self.derived[id(weights)] = _DerivedWeights(weights, call, slice(0, weights.shape[-1]))

    def drop(self, call: SoftmaxCall) -> None:
        """Stop following a call."""
        self.derived = {key: item for key, item in self.derived.items() if item.call is not call}

    def follow(
        self, function: Callable[..., Any], args: Sequence[Any], result: Any
    ) -> SoftmaxCall | None:
        """Inspect a call of a torch function that has returned `result`.

        If it multiplies the weights of a softmax with values, returns that softmax call. If it
        derives a tensor from such weights, that tensor is followed, too.
        """
        operands = list(_iter_tensors(args))
        index = next(
            (index for index, tensor in enumerate(operands) if id(tensor) in self.derived), None
        )
        if index is None:
            return None
        source, name = self.derived[id(operands[index])], getattr(function, "__name__", "")
        if name in PRODUCT_FUNCTIONS:
            if not _multiplies_values(name, args, index, source):
                return None
            source.call.columns = source.columns
            source.call.product = Product(name, args, index, source.is_transposed)
            self.drop(source.call)
            return source.call
        if index == 0 and isinstance(result, torch.Tensor) and id(result) not in self.derived:
            derived = _derive_weights(name, source, result)
            if derived is not None:
                self.derived[id(result)] = derived
        return None


def _iter_tensors(args: Sequence[Any]) -> Any:
    """All tensors among the arguments, also inside lists and tuples."""
    for item in args:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _iter_tensors(item)


def _multiplies_values(
    name: str, args: Sequence[Any], operand: int, weights: _DerivedWeights
) -> bool:
    """Whether a product sums over the keys of the weights and keeps their queries.

    `name` and `args` are those of the torch function, `operand` is the index of the weights among
    its tensors.
    """
    if name != "einsum":  # weights @ values, or values @ transposed weights
        return operand == (1 if weights.is_transposed else 0)
    if not isinstance(args[0], str) or "->" not in args[0]:
        return False
    terms, _, output = args[0].replace(" ", "").partition("->")
    axes = terms.split(",")[operand].replace("...", "")
    if len(axes) < 2:
        return False
    queries, keys = axes[-2:]
    if weights.is_transposed:
        queries, keys = keys, queries
    return keys not in output and queries in output


def _derive_weights(name: str, source: _DerivedWeights, result: Tensor) -> _DerivedWeights | None:
    """Describe the `result` of the function `name` on followed weights.

    None if queries and keys are not its last two axes. Columns may be cut off at either end, if the
    result is a view of the weights.
    """
    old_shape, new_shape = tuple(source.tensor.shape), tuple(result.shape)
    if len(new_shape) < 2:
        return None
    if name in TRANSPOSE_FUNCTIONS:
        new_strides, old_strides = result.stride()[-2:], source.tensor.stride()[-2:]
        if (new_shape[-2:], new_strides) == (old_shape[-2:], old_strides):
            return _DerivedWeights(result, source.call, source.columns, source.is_transposed)
        if (new_shape[-2:], new_strides) == (old_shape[-2:][::-1], old_strides[::-1]):
            return _DerivedWeights(result, source.call, source.columns, not source.is_transposed)
        return None
    if new_shape[-2:] == old_shape[-2:] and result.numel() == source.tensor.numel():
        return _DerivedWeights(result, source.call, source.columns, source.is_transposed)
    has_fewer_columns = new_shape[:-1] == old_shape[:-1] and new_shape[-1] < old_shape[-1]
    is_cut = has_fewer_columns and not source.is_transposed
    if is_cut and result.untyped_storage().data_ptr() == source.tensor.untyped_storage().data_ptr():
        step = source.tensor.stride(-1)
        start = (result.storage_offset() - source.tensor.storage_offset()) // step
        if (
            result.stride() == source.tensor.stride()
            and 0 <= start <= old_shape[-1] - new_shape[-1]
        ):
            start += source.columns.start
            return _DerivedWeights(result, source.call, slice(start, start + new_shape[-1]))
    return None

"""Attention masks: which query may attend to which key, and biases of the attention scores.

A score is the scaled product of a query and a key before the softmax. In every mask, True (or 1)
keeps a pair of a query and a key; such a mask is called a keep mask, as opposed to an additive mask
of 0 and −inf. A query "sees" the keys that all rules keep. Axes: B batch, H heads, Q queries, K
keys, D head width; `#B` may also be 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from neural.nn.kernel_dispatch import is_functorch_active
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """Mask of one attention: rules that must all keep a pair, and biases added to the scores.

    The last query has the position of the last key. So with fewer queries than keys, the queries
    are the newest positions, as in generation with a key/value cache.
    """

    causal: bool = False
    """Whether a query sees no later key."""
    keys: Bool[Tensor, "B K"] | None = None
    """True for keys that are not padding."""
    reach: int | None = None
    """Largest distance in positions between a query and a key that it sees; None: no limit."""
    segments: Int[Tensor, "B K"] | None = None
    """Document number of each position if several documents are packed into one sequence.

    A query sees only keys of its own document.
    """
    pairs: Bool[Tensor, "#B #H Q K"] | None = None
    """Any other rule, for each pair."""
    bias: Float[Tensor, "#B H Q K"] | None = None
    """Added to the scores of each head."""
    key_bias: Float[Tensor, "#B #H K"] | None = None
    """Added to all scores of a key. Cheaper than `bias`: it can be folded into the fused kernel."""

    @property
    def is_order_only(self) -> bool:
        """Whether the mask has no tensors: only `causal` and `reach` may be set."""
        tensors = (self.keys, self.segments, self.pairs, self.bias, self.key_bias)
        return all(tensor is None for tensor in tensors)

    @property
    def is_empty(self) -> bool:
        """Whether every query sees every key, without biases."""
        return not self.causal and self.reach is None and self.is_order_only

    def limit_reach(self, reach: int) -> Mask:
        """This mask with `reach` as additional limit of the distance."""
        return replace(self, reach=reach if self.reach is None else min(reach, self.reach))

    def to_keep_mask(
        self, queries: int, keys: int, device: torch.device
    ) -> Bool[Tensor, "#B #H Q K"] | None:
        """True where a query sees a key, broadcastable; None if every query sees every key.

            keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
            if keep is not None:
                weights = weights.masked_fill(~keep, 0)

        None saves a pass over all pairs. `masked_softmax` (nn/attention/self.py) takes it, too.
        """
        rules = []
        if self.causal or self.reach is not None:
            # Position of the key minus position of the query.
            ahead = torch.arange(keys, device=device) - torch.arange(
                keys - queries, keys, device=device
            ).unsqueeze(-1)
            if self.causal:
                rules.append(ahead <= 0)
            if self.reach is not None:
                rules.append(ahead.abs() <= self.reach)
        if self.keys is not None:
            rules.append(as_bool(self.keys)[:, None, None, :])
        if self.segments is not None:
            rules.append(
                (self.segments[:, keys - queries :, None] == self.segments[:, None, :]).unsqueeze(1)
            )
        if self.pairs is not None:
            rules.append(as_bool(self.pairs))
        if not rules:
            return None
        keep = rules[0]
        for rule in rules[1:]:
            keep = keep & rule
        return keep[(None,) * (4 - keep.ndim)]

    def combine_biases(self) -> Float[Tensor, "#B #H #Q K"] | None:
        """Sum of `bias` and `key_bias`; None without either."""
        if self.key_bias is None:
            return self.bias
        key_bias = self.key_bias.unsqueeze(-2)
        return key_bias if self.bias is None else self.bias + key_bias

    def check(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> None:
        """Raise ValueError for wrong shapes, and for `keys` or `pairs` other than 0 and 1."""
        batch, heads, queries, keys = q.shape[0], q.shape[1], q.shape[-2], k.shape[-2]
        if self.segments is not None and queries > keys:
            raise ValueError(
                "segments need at least as many keys as queries, "
                f"got {queries} queries and {keys} keys"
            )
        for name, mask in (("keys", self.keys), ("pairs", self.pairs)):
            check_keep_mask(mask, f"mask `{name}`")
        expected_shapes = {
            "keys": (batch, keys),
            "segments": (batch, keys),
            "pairs": (batch, heads, queries, keys),
            "bias": (batch, heads, queries, keys),
            "key_bias": (batch, heads, keys),
        }
        for name, shape in expected_shapes.items():
            tensor = getattr(self, name)
            if tensor is None:
                continue
            padded = (1,) * (len(shape) - tensor.ndim) + tuple(tensor.shape)
            if len(padded) != len(shape) or any(
                size not in (1, expected) for size, expected in zip(padded, shape, strict=True)
            ):
                raise ValueError(
                    f"mask `{name}` must have the shape {shape} or broadcast to it, "
                    f"got {tuple(tensor.shape)}"
                )


def as_bool(mask: Tensor | None) -> Any:
    """A mask of 1 and 0 as booleans; None stays None."""
    return mask if mask is None or mask.dtype == torch.bool else mask != 0


def is_keep_mask(mask: Tensor) -> bool:
    """Whether every value is 0 or 1, as opposed to a mask that is added to the scores."""
    return mask.dtype == torch.bool or bool(((mask == 0) | (mask == 1)).all())


def check_keep_mask(mask: Tensor | None, name: str = "the mask") -> None:
    """Raise ValueError for values other than 0 and 1, e.g. an additive mask (0 and −inf).

    Nothing is checked while torch traces (`torch.compile`, `torch.func`): there are no values then.
    """
    if (
        mask is None
        or mask.dtype == torch.bool
        or torch.compiler.is_compiling()
        or is_functorch_active()
    ):
        return
    if not is_keep_mask(mask):
        raise ValueError(
            f"{name} must be True or 1 for real positions and False or 0 for hidden ones, "
            "got other values; convert an additive mask (0 and -inf) with `mask == 0`"
        )

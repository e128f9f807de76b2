"""Who may look at whom. Masks combine by "and"; True (or 1) keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from neural.modules.compiled import transforming
from neural.modules.late import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """The rules of one attention, all of which must allow a pair; and biases on the scores of those that are allowed.

    Where there are fewer queries than keys, the last query stands at the last key (cached generation).
    """

    causal: bool = False
    """No looking ahead."""
    keys: Bool[Tensor, "B K"] | None = None
    """The keys that are not padding."""
    reach: int | None = None
    """The largest distance between a query and a key that it sees."""
    segments: Int[Tensor, "B K"] | None = None
    """Packed documents: a number per position, and only equal numbers see each other."""
    pairs: Bool[Tensor, "#B #H Q K"] | None = None
    """Any other rule, pair by pair."""
    bias: Float[Tensor, "#B H Q K"] | None = None
    """Added to the scores of each head."""
    key_bias: Float[Tensor, "#B #H K"] | None = None
    """Added to all scores of a key: cheaper than `bias`, because it folds into the fused kernel."""

    @property
    def order_only(self) -> bool:
        """Whether nothing but the order of positions counts: no tensor rules, no biases."""
        return all(one is None for one in (self.keys, self.segments, self.pairs, self.bias, self.key_bias))

    @property
    def empty(self) -> bool:
        """Whether everybody sees everybody."""
        return not self.causal and self.reach is None and self.order_only

    def near(self, reach: int) -> Mask:
        """The same, and no further than `reach`."""
        return replace(self, reach=reach if self.reach is None else min(reach, self.reach))

    def kept(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "#B #H Q K"] | None:
        """True where a query sees a key, or a shape that spreads to it; None where all see all."""
        rules = []
        if self.causal or self.reach is not None:
            ahead = torch.arange(keys, device=device) - torch.arange(keys - queries, keys, device=device).unsqueeze(-1)
            if self.causal:
                rules.append(ahead <= 0)
            if self.reach is not None:
                rules.append(ahead.abs() <= self.reach)
        if self.keys is not None:
            rules.append(as_bool(self.keys)[:, None, None, :])
        if self.segments is not None:
            rules.append((self.segments[:, keys - queries :, None] == self.segments[:, None, :]).unsqueeze(1))
        if self.pairs is not None:
            rules.append(as_bool(self.pairs))
        if not rules:
            return None
        kept = rules[0]
        for rule in rules[1:]:
            kept = kept & rule
        return kept[(None,) * (4 - kept.ndim)]

    def biases(self) -> Float[Tensor, "#B #H #Q K"] | None:
        """Everything that is added to the scores."""
        if self.key_bias is None:
            return self.bias
        by_key = self.key_bias.unsqueeze(-2)
        return by_key if self.bias is None else self.bias + by_key

    def check(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> None:
        """Refuse a rule of the wrong shape or with other values than 0 and 1, with a message that names it."""
        batch, heads, queries, keys = q.shape[0], q.shape[1], q.shape[-2], k.shape[-2]
        if self.segments is not None and queries > keys:
            raise ValueError(f"segments need at least as many keys as queries, got {queries} queries and {keys} keys")
        for name, mask in (("keys", self.keys), ("pairs", self.pairs)):
            check_keep_mask(mask, f"mask `{name}`")
        wanted = {
            "keys": (batch, keys), "segments": (batch, keys), "pairs": (batch, heads, queries, keys),
            "bias": (batch, heads, queries, keys), "key_bias": (batch, heads, keys),
        }  # fmt: skip
        for name, shape in wanted.items():
            given = getattr(self, name)
            if given is None:
                continue
            padded = (1,) * (len(shape) - given.ndim) + tuple(given.shape)
            if len(padded) != len(shape) or any(got not in (1, want) for got, want in zip(padded, shape, strict=True)):
                raise ValueError(
                    f"mask `{name}` must have the shape {shape} or spread to it, got {tuple(given.shape)}"
                )


def as_bool(mask: Tensor | None) -> Any:
    """Masks may come as 1/0 floats, or not at all."""
    return mask if mask is None or mask.dtype == torch.bool else mask != 0


def is_keep_mask(mask: Tensor) -> bool:
    """Whether every value is 0 or 1."""
    return mask.dtype == torch.bool or bool(((mask == 0) | (mask == 1)).all())


def check_keep_mask(mask: Tensor | None, name: str = "the mask") -> None:
    """Refuse values other than 0 and 1: an additive mask (0 and −inf) would be read the wrong way round.

    Values cannot be asked for while torch traces; a mask of booleans needs no look.
    """
    if mask is None or mask.dtype == torch.bool or torch.compiler.is_compiling() or transforming():
        return
    if not is_keep_mask(mask):
        raise ValueError(
            f"{name} must be True or 1 where something is real and False or 0 where it is hidden, got other values; "
            "a mask that is added to the scores (0 and -inf) becomes one by `mask == 0`"
        )

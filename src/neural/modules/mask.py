"""Who may look at whom. Masks combine by "and"; True keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from neural.modules.late import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """The rules of one attention: no looking ahead, only real keys, only so far; and a bias on the scores."""

    causal: bool = False
    keys: Bool[Tensor, "B K"] | None = None
    """The keys that are not padding."""
    reach: int | None = None
    """The largest distance between a query and a key that it sees."""
    bias: Float[Tensor, "H Q K"] | None = None
    """Added to the scores of each head."""

    @property
    def only_causal(self) -> bool:
        """Whether the fused kernel's own flag says it all."""
        return self.causal and self.keys is None and self.reach is None and self.bias is None

    @property
    def empty(self) -> bool:
        """Whether everybody sees everybody."""
        return not self.causal and self.keys is None and self.reach is None and self.bias is None

    def near(self, reach: int) -> Mask:
        """The same, and no further than `reach`."""
        return replace(self, reach=reach if self.reach is None else min(reach, self.reach))

    def kept(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "B 1 Q K"] | None:
        """True where a query sees a key; None where all see all. The last query stands at the last key."""
        kept = None
        if self.causal or self.reach is not None:
            ahead = torch.arange(keys, device=device) - torch.arange(keys - queries, keys, device=device).unsqueeze(-1)
            if self.causal:
                kept = ahead <= 0
            if self.reach is not None:
                near = ahead.abs() <= self.reach
                kept = near if kept is None else kept & near
            kept = kept[None, None] if kept is not None else None
        if self.keys is not None:
            real = self.keys[:, None, None, :]
            kept = real if kept is None else kept & real
        return kept

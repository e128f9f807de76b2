"""Attention to the k best keys (Zhao et al., 2019, "Explicit sparse transformer"; Gupta et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count
from neural.modules.attention.self import scores, softmax
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.modules.rowwise import RowWise, filled

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Topk(RowWise):
    """Weights are the softmax over the `k` visible keys with the largest scores; the others get nothing."""

    matrices: ClassVar[float] = 2.75

    k: int = count("How many keys a query looks at.", default=8, shown=True)

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the best; of equal scores, as many as there is room for."""
        found, kept = scores(q, k, mask), mask.kept(q.shape[-2], k.shape[-2], q.device)
        best = filled(found, kept).topk(min(self.k, k.shape[-2]), dim=-1).indices
        chosen = torch.zeros_like(found, dtype=torch.bool).scatter(-1, best, True)
        return softmax(found, chosen if kept is None else chosen & kept)

    @classmethod
    def tiny(cls) -> Topk:
        """Fewer than there are."""
        return cls(k=3)

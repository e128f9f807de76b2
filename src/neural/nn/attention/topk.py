"""Top-k attention (Zhao et al., 2019, "Explicit sparse transformer"; Gupta et al., 2021).

A mechanism (mechanism.py): `weights` defines it. It is positionwise: the weights of a query do not
depend on other queries, so the base class computes `weights @ v` in chunks of queries. Scores are
q·kᵀ / √D plus the biases of the mask. `extra` is unused: it is for mechanisms with learned
parameters.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import int_field
from neural.nn.attention.self import dot_product_scores, masked_softmax
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask
from neural.nn.positionwise import PositionwiseMechanism, fill_masked

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Topk(PositionwiseMechanism):
    """Weights are the softmax over the `k` visible keys with the largest scores."""

    # Q×K matrices of floats saved for the backward pass: the softmax before and after masked
    # weights become 0, and three boolean masks, which count a quarter each.
    saved_matrices: ClassVar[float] = 2.75

    k: int = int_field("Number of keys that get weight.", default=8, shown=True)

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the k largest scores; of equal scores, some are left out to keep k."""
        scores = dot_product_scores(q, k, mask)
        keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        top_keys = fill_masked(scores, keep).topk(min(self.k, k.shape[-2]), dim=-1).indices
        selected = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, top_keys, True)
        return masked_softmax(scores, selected if keep is None else selected & keep)

    @classmethod
    def example(cls) -> Topk:
        """An instance for tests."""
        return cls(k=3)

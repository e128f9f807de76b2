"""Hard attention (Xu et al., 2015): each query attends to one key.

The gradient is a straight-through estimate (Bengio et al., 2013): that of the softmax.

A mechanism (mechanism.py): `weights` defines it. It is positionwise: the weights of a query do not
depend on other queries, so the base class computes `weights @ v` in chunks of queries. Scores are
q·kᵀ / √D plus the biases of the mask. `extra` is unused: it is for mechanisms with learned
parameters.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import bool_field, float_field
from neural.nn.attention.self import dot_product_scores, masked_softmax
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask
from neural.nn.positionwise import PositionwiseMechanism, fill_masked

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Hard(PositionwiseMechanism):
    """Weight 1 for the key with the largest score; the gradient is that of the softmax.

    With `sampled` the key is drawn from the softmax while gradients are recorded (by Gumbel noise,
    Jang et al., 2017). Under `no_grad` it is the best one: validation and prediction are
    repeatable.
    """

    straight_through: ClassVar[bool] = True  # the gradient is that of another function

    sampled: bool = bool_field("Draw the key from the softmax during training.", default=False)
    temperature: float = float_field(
        "Temperature of the softmax of the gradient and of sampling; below 1 it is sharper.",
        default=1.0,
        above=0,
    )

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """1 for the best key (the first of equals), 0 for others.

        The gradient is that of softmax(scores / temperature).
        """
        scores = dot_product_scores(q, k, mask) / self.temperature
        keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        soft = masked_softmax(scores, keep)
        is_sampling = self.sampled and torch.is_grad_enabled()
        with torch.no_grad():
            noise = -torch.empty_like(scores).exponential_().log() if is_sampling else 0
            best_key = fill_masked(scores + noise, keep).argmax(dim=-1, keepdim=True)
            one_hot = torch.zeros_like(soft).scatter(-1, best_key, 1.0)
            one_hot = one_hot if keep is None else one_hot.masked_fill(~keep, 0)
        # Straight-through: the value of `one_hot`, the gradient of `soft`.
        return one_hot + (soft - soft.detach())

    @classmethod
    def example(cls) -> Hard:
        """An instance for tests."""
        return cls(temperature=2.0)

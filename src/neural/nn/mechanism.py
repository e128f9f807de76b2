"""Base class of attention mechanisms: `weights` defines a mechanism, `attend` computes it fast.

The contract tests, which run for every registered mechanism, prove that both agree in values and
gradients. Subclasses are declarations: a program names them, in lowercase, with their arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from neural.language.declaration import LowercaseDeclaration
from neural.language.shapes import Cost
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn


class Mechanism(LowercaseDeclaration):
    """Base class of attention mechanisms: the weight of each key for each query."""

    saved_inputs: ClassVar[str] = "qkv"
    """Which of queries, keys and values `attend` saves for the backward pass; the layer counts them
    as activations.
    """
    straight_through: ClassVar[bool] = False
    """Whether the weights have, by design, the gradient of a smoother function."""
    self_attention_only: ClassVar[bool] = False
    """Whether the weights depend on distance or order of positions, so that queries and keys must
    belong to one sequence. Such a mechanism cannot be the cross-attention of a decoder.
    """

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """Attention weights: the definition of the mechanism, for readers and contract tests.

        Rows sum to 1. Masked keys have weight 0; a row without visible keys is all 0. `extra` is
        the output of the module that `build_learned` creates, if it creates one.
        """
        raise NotImplementedError

    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """`weights(q, k, mask, extra) @ v` by the fastest exact method; `dropout` drops weights."""
        raise NotImplementedError

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask | None:
        """The mask under which the weights are softmax(q·kᵀ / √D); None if there is no such mask.

        Attention capture uses this mask to measure weights without the Q×K matrix.
        For None it computes `weights` for some rows at a time.
        """
        return None

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Cost of `attend` for one example, without projections and `saved_inputs`.

        `queries` and `keys` are numbers of positions, `width` is that of one head.
        """
        raise NotImplementedError

    def build_learned(self, width: int, heads: int, head_width: int) -> nn.Module | None:
        """A module with the mechanism's own parameters: maps the attended sequence to `extra`.

        `width` is that of the attended sequence. None if the mechanism has no parameters.
        """
        return None

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Cost of the learned module for one example with `keys` positions of `width` features."""
        return Cost()

    def example_extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Any:
        """An example of `extra` for the contract tests; None without a learned module."""
        return None

    @classmethod
    def example(cls) -> Mechanism:
        """An instance for the contract tests."""
        return cls()

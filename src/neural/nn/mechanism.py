"""Base class of attention mechanisms: `weights` defines a mechanism, `attend` computes it fast.

A mechanism computes attention from the queries q, keys k and values v of all heads, such as the
softmax of scaled dot products. The contract tests (neural/testing), which run on every registered
mechanism, check that `attend` and `weights @ v` agree in values and gradients. Subclasses are
registry entries: a `.neural` program names them, in lower case, with their arguments.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from neural.language.declaration import RegistryEntry
from neural.language.shapes import Cost
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn


class Mechanism(RegistryEntry):
    """Base class of attention mechanisms: the weight of each key for each query."""

    saved_inputs: ClassVar[str] = "qkv"
    """Which of queries, keys and values `attend` saves for the backward pass.

    The attention layer counts their memory, because they are its projections.
    """
    straight_through: ClassVar[bool] = False
    """Whether the gradient of the weights is, by design, that of a smoother function.

    Tests then do not compare it with numerical differences.
    """
    self_attention_only: ClassVar[bool] = False
    """Whether queries and keys must belong to one sequence: weights depend on their positions.

    Such a mechanism cannot be the cross-attention of a decoder.
    """
    signed: ClassVar[bool] = False
    """Whether weights may be negative; rows then need not sum to 1 (differential attention).

    Tests then check only that weights are finite, and 0 for masked keys. Maps show the sign.
    Measures of attention, such as the entropy, are those of |w| / Σ|w| (capture/dense_weights.py).
    """

    spreads_nan: ClassVar[bool] = False
    """Whether a NaN in a visible query, key or value always makes an output NaN.

    The function `attend` then checks only the output: a third of the time of all inputs.
    """

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """Attention weights: the definition of the mechanism.

        A row, the weights of one query, sums to 1, unless the mechanism is `signed`. Masked keys
        have weight 0; a row without visible keys is all 0. `extra` is the output of the module that
        `build_learned` creates, if any.
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

        With this mask, attention capture (neural/capture) measures weights without allocating the
        Q×K matrix. Without it, capture computes `weights` for a few rows at a time.
        """
        return None

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Multiply-adds and saved values of `attend` for one example.

        Projections and `saved_inputs` are not included. `queries` and `keys` are numbers of
        positions, `width` is the width of one head.
        """
        raise NotImplementedError

    def build_learned(self, width: int, heads: int, head_width: int) -> nn.Module | None:
        """A module with the mechanism's own parameters; None if it has none.

        Its input is the attended sequence, which has `width` features; its output is `extra`.
        """
        return None

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Cost of the `build_learned` module for one sequence of `keys` positions."""
        return Cost()

    def example_extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Any:
        """Random values of `extra` for the contract tests; None without a learned module."""
        return None

    @classmethod
    def example(cls) -> Mechanism:
        """An instance for the tests that run on every registered mechanism."""
        return cls()

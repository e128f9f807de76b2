"""What every attention mechanism promises: defined by `weights`, run by `mix`. The contract proves them equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from neural.language.declaration import Named
from neural.language.shapes import Cost
from neural.modules.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn


class Mechanism(Named):
    """A way to decide how much each query looks at each key."""

    saved_inputs: ClassVar[str] = "qkv"
    """Which of queries, keys and values `mix` saves for the backward pass; the layer counts those as activations."""
    straight_through: ClassVar[bool] = False
    """Whether the gradient of the weights is, on purpose, that of something smoother than what is computed."""
    self_attention_only: ClassVar[bool] = False
    """Whether weights depend on the distance or order of positions, so that queries and keys must belong to one
    sequence. Such a mechanism cannot be the cross-attention of a decoder.
    """

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """How much each query looks at each key. Rows sum to 1; masked positions are 0; an empty row is all 0.

        The plain definition, for readers and for the contract. `extra` is what the learned part gave, if there is one.
        """
        raise NotImplementedError

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """`weights(q, k, mask, extra) @ v`, by the fastest exact way known; `dropout` drops weights."""
        raise NotImplementedError

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask | None:
        """The rules and biases under which the weights are softmax(q·kᵀ / √D), so that they can be measured unwritten.

        None where they come about another way: whoever watches writes them out, some rows at a time.
        """
        return None

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Of `mix` alone, for one example: projections and `saved_inputs` belong to the layer around it."""
        raise NotImplementedError

    def learned(self, width: int, heads: int, head_width: int) -> nn.Module | None:
        """The part with parameters of its own: called with the sequence that is looked at, gives `extra`."""
        return None

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Of the learned part, for one example with `keys` positions of `width` features."""
        return Cost()

    def extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Any:
        """An example of what the learned part gives, for the contract tests; None without one."""
        return None

    @classmethod
    def tiny(cls) -> Mechanism:
        """An instance for the contract tests."""
        return cls()

"""Embedding of token ids.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size. A ShapeError is
reported to the user with its code; the check of later layers continues with the shape
`assumed_output`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import choice_field, int_field
from neural.language.layer import Layer, Role
from neural.language.shapes import Cost, Shape, ShapeError, format_shape, numel
from neural.nn.initializers import init_weights
from neural.nn.lazy_torch import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


class Embedding(Layer):
    """Learned vector for every token id, unscaled; `Output(…, tied=true)` shares the vectors."""

    role: ClassVar[Role] = "embedding"
    pointwise = True  # each position is computed alone
    print_all_names = True  # `repr` writes `input_dim=8`, not `8`

    input_dim: int = int_field("Number of different ids.")
    output_dim: int = int_field("Width of the vectors.")
    pad_id: int | None = int_field("The id of padding, which is masked.", default=None, at_least=0)
    init: str = choice_field(
        ("torch", "gpt2"),
        "Initialization: standard deviation 1 (torch) or 0.02 (gpt2).",
        default="torch",
    )

    def verify(self) -> None:
        """Raise ShapeError if `pad_id` is not an id."""
        if self.pad_id is not None and self.pad_id >= self.input_dim:
            raise ShapeError(
                "E0207",
                f"`pad_id` must be below `input_dim`, got {self.pad_id}",
                at=["pad_id"],
                notes={"input_dim": f"ids are 0 to {self.input_dim - 1}"},
            )

    def shape(self, x: Shape) -> Shape:
        """The input's shape with `output_dim` as additional axis."""
        if len(x) != 1:
            raise ShapeError(
                "E0306",
                f"`Embedding` takes token ids, but {format_shape(x)} arrives",
                assumed_output=(*x[:-1], self.output_dim),
                helps=["it must be the first layer, after `input: (length,)`"],
            )
        return (*x, self.output_dim)

    def cost(self, x: Shape) -> Cost:
        """`input_dim · output_dim` parameters, no arithmetic."""
        return Cost(
            parameters=self.input_dim * self.output_dim, activations=numel(x) * self.output_dim
        )

    def build(self, x: Shape) -> EmbeddingModule:
        """An embedding table."""
        return EmbeddingModule(self.input_dim, self.output_dim, self.pad_id, init=self.init)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Eleven ids, one of them padding."""
        return cls(input_dim=11, output_dim=5, pad_id=0), (7,)


class EmbeddingModule(Module):
    """An embedding table, and the padding mask of token ids."""

    def __init__(
        self, num_embeddings: int, width: int, pad_id: int | None = None, init: str = "torch"
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(num_embeddings, width, padding_idx=pad_id)
        self.pad_id = pad_id
        init_weights(self.table, init)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """One vector per id."""
        return self.table(ids)

    def mask(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"] | None
    ) -> Bool[Tensor, "B T"] | None:
        """The padding mask (True: real) of `ids`: `mask`, and False where the id is `pad_id`."""
        if self.pad_id is None:
            return mask
        not_padding = ids != self.pad_id
        return not_padding if mask is None else not_padding & mask

"""Token ids to vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import choice, count
from neural.language.layer import Layer, Role
from neural.language.shapes import Cost, Misfit, Shape, show, size
from neural.modules.initial import start
from neural.modules.late import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


class Embedding(Layer):
    """Looks up a learned vector for every token id. Unscaled; `Output(…, tied=true)` uses the vectors again."""

    role: ClassVar[Role] = "embedding"
    pointwise = True
    names_all = True

    input_dim: int = count("How many different ids there are.")
    output_dim: int = count("Width of the vectors.")
    pad_id: int | None = count("The id that fills up short sequences: never looked at.", default=None, at_least=0)
    init: str = choice(("torch", "gpt2"), "How the vectors begin: of deviation 1, or 0.02.", default="torch")

    def verify(self) -> None:
        """The padding is one of the ids."""
        if self.pad_id is not None and self.pad_id >= self.input_dim:
            raise Misfit(
                "E0207", f"`pad_id` must be below `input_dim`, got {self.pad_id}", at=["pad_id"],
                notes={"input_dim": f"ids are 0 to {self.input_dim - 1}"},
            )  # fmt: skip

    def shape(self, x: Shape) -> Shape:
        """One axis more."""
        if len(x) != 1:
            raise Misfit(
                "E0306", f"`Embedding` takes token ids, but {show(x)} arrives", assume=(*x[:-1], self.output_dim),
                helps=["it must be the first layer, after `input: (length,)`"],
            )  # fmt: skip
        return (*x, self.output_dim)

    def cost(self, x: Shape) -> Cost:
        """A table, and no arithmetic: `input_dim · output_dim` parameters."""
        return Cost(parameters=self.input_dim * self.output_dim, activations=size(x) * self.output_dim)

    def build(self, x: Shape) -> Lookup:
        """A table of vectors."""
        return Lookup(self.input_dim, self.output_dim, self.pad_id, init=self.init)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Eleven ids."""
        return cls(input_dim=11, output_dim=5, pad_id=0), (7,)


class Lookup(Module):
    """A table of vectors, and the padding mask that follows from the ids."""

    def __init__(self, ids: int, width: int, pad_id: int | None = None, init: str = "torch") -> None:
        super().__init__()
        self.table = nn.Embedding(ids, width, padding_idx=pad_id)
        self.pad_id = pad_id
        start(self.table, init)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        """One vector per id."""
        return self.table(ids)

    def mask(self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"] | None) -> Bool[Tensor, "B T"] | None:
        """What is not padding, and not masked already."""
        if self.pad_id is None:
            return mask
        real = ids != self.pad_id
        return real if mask is None else real & mask

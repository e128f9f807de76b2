"""The head of a network: a dense layer that says so, with weights of its own or the embedding's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import flag
from neural.language.layer import Role
from neural.language.shapes import Cost, Misfit, Shape, width
from neural.modules.activations import activation
from neural.modules.late import Module, functional, nn, torch
from neural.modules.layers.dense import Dense, Linear

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Output(Dense):
    """What the network predicts; nothing comes behind it."""

    role: ClassVar[Role] = "head"
    pointwise = False

    tied: bool = flag("Use the vectors of the `Embedding` as weights (Press and Wolf, 2017).", default=False)

    table: tuple[int, int] | None = None
    """How many vectors of what width the embedding has; set by the network, not by the program."""

    @property
    def uses_table(self) -> bool:
        """Where it is tied."""
        return self.tied

    def tied_to(self, ids: int, features: int) -> Output:
        """The same output, with the weights of an embedding of that size."""
        return replace(self, table=(ids, features))

    def verify(self) -> None:
        """Weights that belong to the embedding begin as it says."""
        if self.tied and self.init != "torch":
            raise Misfit(
                "E0314", "a tied `Output` has no weights of its own to begin with", at=["init"],
                helps=[f'write `init="{self.init}"` in the `Embedding`' if self.init != "zero" else None],
            )  # fmt: skip

    def shape(self, x: Shape) -> Shape:
        """Only the last size changes."""
        gives = super().shape(x)
        if self.tied and self.table is not None:
            ids, features = self.table
            if self.units != ids:
                raise Misfit(
                    "E0314", f"`Output` has {self.units} units, but the `Embedding` it is tied to has {ids} ids",
                    at=["units"], assume=gives, helps=[f"`Output({ids}, …)`, or leave `tied` out"],
                )  # fmt: skip
            if width(x) != features:
                raise Misfit(
                    "E0314", f"{width(x)} features arrive, but the `Embedding` this is tied to is {features} wide",
                    at=["tied"], assume=gives, helps=[f"`Embedding(…, output_dim={width(x)})`, or leave `tied` out"],
                )  # fmt: skip
        return gives

    def cost(self, x: Shape) -> Cost:
        """As a dense layer's, `units · (E + bias)` parameters; tied weights are counted where they belong."""
        cost = super().cost(x)
        return replace(cost, parameters=self.units * self.bias) if self.tied else cost

    def build(self, x: Shape) -> Linear | Tied:   # type: ignore[override]  # tied, it is no dense layer
        """A linear map and the activation."""
        return Tied(self.units, self.activation, bias=self.bias) if self.tied else super().build(x)


class Tied(Module):
    """How much each vector of a table points where `x` points, then an activation. The table is not its own."""

    def __init__(self, units: int, activation_name: str, bias: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(units)) if bias else None
        self.activation = activation(activation_name)

    def forward(self, x: Float[Tensor, "*B E"], table: Float[Tensor, "units E"]) -> Float[Tensor, "*B units"]:
        """The same at every position."""
        return self.activation(functional.linear(x, table, self.bias))

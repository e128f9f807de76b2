"""The output layer of a network: dense, with its own weights or those of the embedding.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size. A ShapeError is
reported to the user with its code; the check of later layers continues with the shape
`assumed_output`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import bool_field
from neural.language.layer import Role
from neural.language.shapes import Cost, Shape, ShapeError, feature_width
from neural.nn.activations import build_activation
from neural.nn.layers.dense import Dense, DenseModule
from neural.nn.lazy_torch import Module, functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Output(Dense):
    """The last layer of a network: a dense layer whose output is the prediction."""

    role: ClassVar[Role] = "output"
    pointwise = False  # unlike `Dense`: the output layer belongs to the target sequence only

    tied: bool = bool_field(
        "Use the vectors of the `Embedding` as weights (Press and Wolf, 2017).", default=False
    )

    table: tuple[int, int] | None = None
    """Size of the embedding, (ids, width); set by `tie_to`, not by the program."""

    @property
    def uses_embedding_table(self) -> bool:
        """Whether the module takes the embedding's weight as second input: only if `tied`."""
        return self.tied

    def tie_to(self, ids: int, features: int) -> Output:
        """This output, tied to an embedding of that size."""
        return replace(self, table=(ids, features))

    def verify(self) -> None:
        """Raise ShapeError if a tied output, which has no own weights, has an initialization."""
        if self.tied and self.init != "torch":
            raise ShapeError(
                "E0314",
                "a tied `Output` has no weights of its own to initialize",
                at=["init"],
                helps=[
                    f'write `init="{self.init}"` in the `Embedding`'
                    if self.init != "zero"
                    else None
                ],
            )

    def shape(self, x: Shape) -> Shape:
        """The input's shape with `units` as last size."""
        output_shape = super().shape(x)
        if self.tied and self.table is not None:
            ids, features = self.table
            if self.units != ids:
                raise ShapeError(
                    "E0314",
                    f"`Output` has {self.units} units, but the `Embedding` it is tied to has "
                    f"{ids} ids",
                    at=["units"],
                    assumed_output=output_shape,
                    helps=[f"`Output({ids}, …)`, or leave `tied` out"],
                )
            if feature_width(x) != features:
                raise ShapeError(
                    "E0314",
                    f"{feature_width(x)} features arrive, but the `Embedding` this is tied to is "
                    f"{features} wide",
                    at=["tied"],
                    assumed_output=output_shape,
                    helps=[f"`Embedding(…, output_dim={feature_width(x)})`, or leave `tied` out"],
                )
        return output_shape

    def cost(self, x: Shape) -> Cost:
        """`units · (E + bias)` parameters; a tied output has only its bias."""
        cost = super().cost(x)
        return replace(cost, parameters=self.units * self.bias) if self.tied else cost

    def build(self, x: Shape) -> DenseModule | TiedOutputModule:  # type: ignore[override]  # a tied output is no dense layer
        """A linear map and the activation."""
        return (
            TiedOutputModule(self.units, self.activation, bias=self.bias)
            if self.tied
            else super().build(x)
        )


class TiedOutputModule(Module):
    """x·tableᵀ + bias, then an activation. The table is the weight of the embedding."""

    def __init__(self, units: int, activation_name: str, bias: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(units)) if bias else None
        self.activation = build_activation(activation_name)

    def forward(
        self, x: Float[Tensor, "*B E"], table: Float[Tensor, "units E"]
    ) -> Float[Tensor, "*B units"]:
        """The same map at every position."""
        return self.activation(functional.linear(x, table, self.bias))

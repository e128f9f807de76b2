"""Residual connection around layers (He et al., 2015).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis. A ShapeError is reported to the user with its code; the check of
later layers continues with the shape `assumed_output`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import entries_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, ShapeError, format_shape
from neural.nn.layers import registry as layers
from neural.nn.layers.dense import Dense
from neural.nn.lazy_torch import Module, nn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class Residual(Layer):
    """Adds the input to the output of its layers: `Residual(LayerNormalization(), Dense(64))`."""

    layers: tuple[Layer, ...] = entries_field(layers, "The layers, applied one after the other.")

    @property
    def uses_mask(self) -> bool:
        """Whether one of the inner layers takes the padding mask."""
        return any(layer.uses_mask for layer in self.layers)

    def verify(self) -> None:
        """Verify the layers; ShapeError for layers that need the rest of the network."""
        for layer in self.layers:
            if layer.role not in ("plain", "positions"):
                raise ShapeError(
                    "E0312",
                    f"`{type(layer).__name__}` cannot be inside `Residual`",
                    helps=[
                        "blocks have their own residuals; outputs and embeddings belong outside"
                    ],
                )
            layer.verify()

    def shape(self, x: Shape) -> Shape:
        """Unchanged: the layers must keep the shape."""
        y = x
        for layer in self.layers:
            y = layer.shape(y)
        if y != x:
            raise ShapeError(
                "E0313",
                f"`Residual` adds its input {format_shape(x)} to {format_shape(y)}: "
                "the shapes must be equal",
                assumed_output=x,
                helps=[f"end with `Dense({x[-1]})`" if x[:-1] == y[:-1] else None],
            )
        return x

    def cost(self, x: Shape) -> Cost:
        """Sum of the layers' costs; the addition needs no memory of its own."""
        total, y = Cost(), x
        for layer in self.layers:
            total, y = total + layer.cost(y), layer.shape(y)
        return total

    def build(self, x: Shape) -> ResidualModule:
        """The modules; layers after the end of the time axis get no padding mask."""
        modules, uses_mask, resizes_mask, y = [], [], [], x
        has_mask = True
        for layer in self.layers:
            modules.append(layer.build(y))
            uses_mask.append(layer.uses_mask and has_mask)
            resizes_mask.append(layer.resizes_mask and has_mask)
            has_mask = has_mask and (layer.keeps_time or layer.resizes_mask)
            y = layer.shape(y)
        return ResidualModule(modules, uses_mask, resizes_mask)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Two dense layers, to five features and back to three."""
        return cls(layers=(Dense(units=5, activation="relu"), Dense(units=3))), (7, 3)


class ResidualModule(Module):
    """x + f(x), where f is the modules `parts`, one after the other."""

    def __init__(
        self, parts: Sequence[nn.Module], uses_mask: Sequence[bool], resizes_mask: Sequence[bool]
    ) -> None:
        """`uses_mask`: which modules take the padding mask; `resizes_mask`: which change it."""
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.uses_mask, self.resizes_mask = list(uses_mask), list(resizes_mask)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` is passed to the modules that use it."""
        y = x
        steps = zip(self.parts, self.uses_mask, self.resizes_mask, strict=True)
        for module, uses_mask, resizes_mask in steps:
            y = module(y, mask) if uses_mask else module(y)
            if resizes_mask and mask is not None:
                mask = module.output_mask(mask, y)  # type: ignore[operator]  # a method
        return x + y

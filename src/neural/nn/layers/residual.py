"""Residual connection around layers (He et al., 2015).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program. Shapes
have no batch axis; E is the width of the input, its last size.
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
        """Whether one of the inner layers uses the padding mask."""
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
                assume=x,
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
        """The modules; those that use the padding mask get it as long as the time axis exists."""
        modules, masked, mapped, y = [], [], [], x
        has_mask = True
        for layer in self.layers:
            modules.append(layer.build(y))
            masked.append(layer.uses_mask and has_mask)
            mapped.append(layer.maps_mask and has_mask)
            has_mask = has_mask and (layer.keeps_time or layer.maps_mask)
            y = layer.shape(y)
        return ResidualModule(modules, masked, mapped)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Two dense layers, to five features and back to three."""
        return cls(layers=(Dense(units=5, activation="relu"), Dense(units=3))), (7, 3)


class ResidualModule(Module):
    """x + f(x), where f is the modules `parts`, one after the other."""

    def __init__(
        self, parts: Sequence[nn.Module], masked: Sequence[bool], mapped: Sequence[bool]
    ) -> None:
        """`masked`: which modules take the padding mask; `mapped`: which change its length."""
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.masked, self.mapped = list(masked), list(mapped)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` is passed to the modules that use it."""
        y = x
        for module, masked, mapped in zip(self.parts, self.masked, self.mapped, strict=True):
            y = module(y, mask) if masked else module(y)
            if mapped and mask is not None:
                mask = module.output_mask(mask, y)  # type: ignore[operator]  # a method
        return x + y

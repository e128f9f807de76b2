"""A way around some layers (He et al., 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import several
from neural.language.layer import Layer
from neural.language.shapes import Cost, Misfit, Shape, show
from neural.modules.late import Module, nn
from neural.modules.layers import registry as layers
from neural.modules.layers.dense import Dense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class Residual(Layer):
    """Adds what comes in to what some layers make of it: `Residual(LayerNormalization(), Dense(64))`."""

    layers: tuple[Layer, ...] = several(layers, "The layers to go around, one after the other.")

    @property
    def uses_mask(self) -> bool:
        """If one of its layers does."""
        return any(layer.uses_mask for layer in self.layers)

    def verify(self) -> None:
        """Every layer inside must make sense, and none can need the rest of the network."""
        for layer in self.layers:
            if layer.role not in ("plain", "positions"):
                raise Misfit(
                    "E0312", f"`{type(layer).__name__}` cannot stand inside `Residual`",
                    helps=["blocks have residuals of their own; heads and embeddings need a place of their own"],
                )  # fmt: skip
            layer.verify()

    def shape(self, x: Shape) -> Shape:
        """Unchanged: the layers must give back the shape they get."""
        y = x
        for layer in self.layers:
            y = layer.shape(y)
        if y != x:
            raise Misfit(
                "E0313", f"`Residual` adds its input {show(x)} to {show(y)}: the shapes must be equal", assume=x,
                helps=[f"end with `Dense({x[-1]})`" if x[:-1] == y[:-1] else None],
            )  # fmt: skip
        return x

    def cost(self, x: Shape) -> Cost:
        """That of the layers: the sum takes the place of the last one's result."""
        total, y = Cost(), x
        for layer in self.layers:
            total, y = total + layer.cost(y), layer.shape(y)
        return total

    def build(self, x: Shape) -> Around:
        """The layers in a row; the mask goes along as long as there is time to mask."""
        parts, masked, mapped, y = [], [], [], x
        has_mask = True
        for layer in self.layers:
            parts.append(layer.build(y))
            masked.append(layer.uses_mask and has_mask)
            mapped.append(layer.maps_mask and has_mask)
            has_mask = has_mask and (layer.keeps_time or layer.maps_mask)
            y = layer.shape(y)
        return Around(parts, masked, mapped)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Out to five and back to three."""
        return cls(layers=(Dense(units=5, activation="relu"), Dense(units=3))), (7, 3)


class Around(Module):
    """x + f(x)."""

    def __init__(
        self, parts: Sequence[nn.Module], masked: Sequence[bool], mapped: Sequence[bool]
    ) -> None:
        """`masked`: which parts take the mask; `mapped`: which change it."""
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.masked, self.mapped = list(masked), list(mapped)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The mask goes to the parts that use it."""
        y = x
        for part, masked, mapped in zip(self.parts, self.masked, self.mapped, strict=True):
            y = part(y, mask) if masked else part(y)
            if mapped and mask is not None:
                mask = part.output_mask(mask, y)  # type: ignore[operator]  # a method
        return x + y

"""The largest number in a window, over time, channels last."""

from __future__ import annotations

from neural.language.declaration import choice, count
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, size
from neural.modules.convolution import PADDINGS, MaxPooling, windows


class MaxPooling1D(Layer):
    """Keeps the largest number of every window, feature by feature."""

    keeps_time = False
    maps_mask = True

    pool_size: int = count("Positions in the window.", default=2)
    strides: int | None = count("How far the window moves; by default its own size.", default=None)
    padding: str = choice(PADDINGS, '"valid": only whole windows; "same": also those over the edges.', default="valid")

    @property
    def uses_mask(self) -> bool:
        """Padding is never the largest."""
        return True

    def shape(self, x: Shape) -> Shape:
        """As many positions as windows fit."""
        need_rank(x, 2, "a sequence, (time, features)")
        strides = (self.strides or self.pool_size,)
        return (*windows(x[:1], (self.pool_size,), strides, self.padding, "pool_size"), x[1])

    def cost(self, x: Shape) -> Cost:
        """The result and where it came from."""
        return Cost(activations=3 * size(self.shape(x)))

    def build(self, x: Shape) -> MaxPooling:
        """torch's, with the axes turned."""
        return MaxPooling((self.pool_size,), (self.strides or self.pool_size,), self.padding == "same")

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Three pairs and a rest."""
        return cls(), (7, 3)

"""The largest number in a window, over images, channels last."""

from __future__ import annotations

from neural.language.declaration import choice, pair
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, size
from neural.modules.convolution import PADDINGS, MaxPooling, windows


class MaxPooling2D(Layer):
    """Keeps the largest number of every window, feature by feature."""

    keeps_time = False

    pool_size: tuple[int, int] = pair("Height and width of the window.", default=(2, 2))
    strides: tuple[int, int] | None = pair("How far the window moves; by default its own size.", default=None)
    padding: str = choice(PADDINGS, '"valid": only whole windows; "same": also those over the edges.', default="valid")

    def shape(self, x: Shape) -> Shape:
        """As many positions as windows fit."""
        need_rank(x, 3, "an image, (height, width, channels)")
        strides = self.strides or self.pool_size
        return (*windows(x[:2], self.pool_size, strides, self.padding, "pool_size"), x[2])

    def cost(self, x: Shape) -> Cost:
        """The result and where it came from."""
        return Cost(activations=3 * size(self.shape(x)))

    def build(self, x: Shape) -> MaxPooling:
        """torch's, with the axes turned."""
        return MaxPooling(self.pool_size, self.strides or self.pool_size, self.padding == "same")

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """With a rest on either side."""
        return cls(pool_size=(2, 3)), (7, 11, 3)

"""Max pooling over images, channels last.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis.
"""

from __future__ import annotations

from neural.language.declaration import choice_field, int_pair_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, numel, require_rank
from neural.nn.convolution import PADDING_MODES, MaxPooling, count_windows


class MaxPooling2D(Layer):
    """Maximum of every window, for each feature."""

    keeps_time = False  # the padding mask of the input does not fit the output

    pool_size: tuple[int, int] = int_pair_field("Height and width of the window.", default=(2, 2))
    strides: tuple[int, int] | None = int_pair_field(
        "Stride of the window; by default its size.", default=None
    )
    padding: str = choice_field(
        PADDING_MODES,
        '"valid": only complete windows; "same": also windows over the edges.',
        default="valid",
    )

    def shape(self, x: Shape) -> Shape:
        """The number of windows, and the features."""
        require_rank(x, 3, "an image, (height, width, channels)")
        strides = self.strides or self.pool_size
        return (*count_windows(x[:2], self.pool_size, strides, self.padding, "pool_size"), x[2])

    def cost(self, x: Shape) -> Cost:
        """Saves the output and the indices of the maxima, which are 64-bit: two floats each."""
        return Cost(activations=3 * numel(self.shape(x)))

    def build(self, x: Shape) -> MaxPooling:
        """torch's max pooling, channels last."""
        return MaxPooling(self.pool_size, self.strides or self.pool_size, self.padding == "same")

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Sizes that the window does not divide."""
        return cls(pool_size=(2, 3)), (7, 11, 3)

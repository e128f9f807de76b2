"""Max pooling over time, channels last.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis.
"""

from __future__ import annotations

from neural.language.declaration import choice_field, int_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, numel, require_rank
from neural.nn.convolution import PADDING_MODES, MaxPooling, count_windows


class MaxPooling1D(Layer):
    """Maximum of every window, for each feature.

    With `padding="same"` and strides above 1 the first window begins where Keras lets it begin, which
    depends on the padded length of the batch; `"valid"` does not depend on it.
    """

    keeps_time = False  # the padding mask of the input does not fit the output
    resizes_mask = True  # the module has `output_mask`, which converts the padding mask

    pool_size: int = int_field("Number of positions in the window.", default=2)
    strides: int | None = int_field("Stride of the window; by default its size.", default=None)
    padding: str = choice_field(
        PADDING_MODES,
        '"valid": only complete windows; "same": also windows over the edges.',
        default="valid",
    )

    @property
    def uses_mask(self) -> bool:
        """True: the module takes the padding mask, and padding is never the maximum."""
        return True

    def shape(self, x: Shape) -> Shape:
        """The number of windows, and the features."""
        require_rank(x, 2, "a sequence, (time, features)")
        strides = (self.strides or self.pool_size,)
        return (*count_windows(x[:1], (self.pool_size,), strides, self.padding, "pool_size"), x[1])

    def cost(self, x: Shape) -> Cost:
        """Saves the output and the indices of the maxima, which are 64-bit: two floats each."""
        return Cost(activations=3 * numel(self.shape(x)))

    def build(self, x: Shape) -> MaxPooling:
        """torch's max pooling, channels last."""
        return MaxPooling(
            (self.pool_size,), (self.strides or self.pool_size,), self.padding == "same"
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Three windows, one position left over."""
        return cls(), (7, 3)

"""Positional encoding as a layer of the program, added to its input.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import entry_field, int_field
from neural.language.layer import Layer, Role
from neural.language.shapes import Cost, Shape, ShapeError, feature_width, numel, require_rank
from neural.nn.position import Position, require_length
from neural.nn.positions import registry as positions
from neural.nn.positions.learned import Learned
from neural.nn.positions.sinusoidal import Sinusoidal

if TYPE_CHECKING:
    from torch.nn import Module


class PositionalEncoding(Layer):
    """Adds a positional encoding to the input."""

    role: ClassVar[Role] = "positions"
    pointwise = True  # each position is computed alone

    encoding_type: Position = entry_field(
        positions, "Kind of positional encoding.", default=Sinusoidal(), shown=True
    )
    max_len: int | None = int_field("Maximum sequence length, for learned positions.", default=None)

    def verify(self) -> None:
        """Raise ShapeError for encodings that act inside attention."""
        if not self.encoding_type.is_additive:
            name = repr(self.encoding_type).partition("(")[0]
            raise ShapeError(
                "E0219",
                f'"{name}" is not added to the input: it acts inside attention',
                at=["encoding_type"],
                helps=[f'write `positional="{name}"` in the transformer blocks instead'],
            )

    def _encoding(self) -> Position:
        """The encoding, with the layer's `max_len` if its positions are learned."""
        if self.max_len is not None and isinstance(self.encoding_type, Learned):
            return Learned(max_len=self.max_len)
        return self.encoding_type

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        require_rank(x, 2, "a sequence, (time, features)")
        feature_width(x)  # raises ShapeError if the width is unknown
        self._encoding().validate(x)
        if self.max_len is not None:
            require_length(x, self.max_len)
        return x

    def cost(self, x: Shape) -> Cost:
        """Learned positions have `max_len · E` parameters, others none."""
        return Cost(parameters=self._encoding().count_parameters(x), activations=numel(x))

    def build(self, x: Shape) -> Module:
        """The module that adds the encoding."""
        module: Module = self._encoding().build(x)
        return module

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Learned positions, more than the seven that the sequence needs."""
        return cls(encoding_type=Learned(), max_len=9), (7, 5)

"""Positions, added to the input where the program says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count, entry
from neural.language.layer import Layer, Role
from neural.language.shapes import Cost, Misfit, Shape, need_rank, size, width
from neural.modules.position import Position, known_length
from neural.modules.positions import registry as positions
from neural.modules.positions.learned import Learned
from neural.modules.positions.sinusoidal import Sinusoidal

if TYPE_CHECKING:
    from torch.nn import Module


class PositionalEncoding(Layer):
    """Tells a transformer where things are, by adding something to each position."""

    role: ClassVar[Role] = "positions"
    pointwise = True

    encoding_type: Position = entry(positions, "What is added.", default=Sinusoidal(), shown=True)
    max_len: int | None = count("Longest sequence, for learned positions.", default=None)

    def verify(self) -> None:
        """Some positions work inside attention and cannot be added."""
        if not self.encoding_type.adds:
            name = repr(self.encoding_type).partition("(")[0]
            raise Misfit(
                "E0219", f'"{name}" is not added to the input: it works inside attention', at=["encoding_type"],
                helps=[f'write `positional="{name}"` in the transformer blocks instead'],
            )  # fmt: skip

    def _encoding(self) -> Position:
        if self.max_len is not None and isinstance(self.encoding_type, Learned):
            return Learned(max_len=self.max_len)
        return self.encoding_type

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        need_rank(x, 2, "a sequence, (time, features)")
        width(x)
        self._encoding().fits(x)
        if self.max_len is not None:
            known_length(x, self.max_len)
        return x

    def cost(self, x: Shape) -> Cost:
        """Learned positions have `max_len · E` parameters, others none."""
        return Cost(parameters=self._encoding().parameters(x), activations=size(x))

    def build(self, x: Shape) -> Module:
        """Adds them."""
        made: Module = self._encoding().build(x)
        return made

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Learned ones, with room to spare."""
        return cls(encoding_type=Learned(), max_len=9), (7, 5)

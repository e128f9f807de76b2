"""Recurrent layers: one declaration and one module for all cells that torch has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count, flag
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, numbers, width
from neural.modules.late import Module, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class Recurrent(Layer):
    """Reads a sequence step by step, with a memory."""

    cell: ClassVar[str] = ""
    """The class in `torch.nn`."""
    gates: ClassVar[int] = 1
    """Weighted sums per unit and step."""
    kept: ClassVar[int] = 2
    """Numbers kept until the backward pass, per unit and step."""

    units: int = count("Width of the memory, in each direction.")
    return_sequences: bool = flag("Give the memory after every step, not only the last.", default=True)
    bidirectional: bool = flag("Read backwards as well, and give both side by side.", default=False)

    @property
    def uses_mask(self) -> bool:
        """Padding is not read."""
        return True

    def shape(self, x: Shape) -> Shape:
        """The units, of both directions, per step or once."""
        out = self.units * (1 + self.bidirectional)
        need_rank(x, 2, "a sequence, (time, features)", assume=("T", out) if self.return_sequences else (out,))
        width(x)
        return (x[0], out) if self.return_sequences else (out,)

    def cost(self, x: Shape) -> Cost:
        """Every gate sees input and memory: `gates · (1 + bidirectional) · units · (E + units + 2)` parameters.

        An LSTM has four gates, a GRU three, each with torch's two biases. Each step keeps its gates and memories.
        """
        time, features = numbers(x)
        directions, rows = 1 + self.bidirectional, self.gates * self.units
        return Cost(
            parameters=directions * rows * (features + self.units + 2),
            multiply_adds=directions * time * rows * (features + self.units),
            activations=directions * time * self.kept * self.units,
        )

    def build(self, x: Shape) -> Recurrence:
        """torch's."""
        return Recurrence(self.cell, width(x), self.units, self.bidirectional, self.return_sequences)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Both directions."""
        return cls(units=5, bidirectional=True), (7, 3)


class Recurrence(Module):
    """A recurrent network that steps over padding, wherever it stands."""

    def __init__(self, cell: str, inputs: int, units: int, both_ways: bool, sequences: bool) -> None:
        super().__init__()
        self.cell = getattr(nn, cell)(inputs, units, batch_first=True, bidirectional=both_ways)
        self.sequences = sequences

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B *T U"]:
        """The memory after each step (zeros at padding), or after the last one read in each direction."""
        with torch.autocast("cpu", enabled=False):   # few processors have recurrence in 16 bits
            return self.read(x.to(self.cell.weight_ih_l0.dtype), mask)

    def read(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B *T U"]:
        """In the precision of the weights."""
        if mask is None:
            steps, last = self.cell(x)
        else:
            # real steps to the front, so that they can be packed; afterwards back to where they came from
            order = (~mask).long().argsort(dim=1, stable=True)
            lengths = mask.sum(dim=1).clamp(min=1).cpu()
            front = x.gather(1, order.unsqueeze(-1).expand_as(x))
            packed = nn.utils.rnn.pack_padded_sequence(front, lengths, batch_first=True, enforce_sorted=False)
            steps, last = self.cell(packed)
            steps = nn.utils.rnn.pad_packed_sequence(steps, batch_first=True, total_length=x.shape[1])[0]
            back = order.argsort(dim=1).unsqueeze(-1).expand_as(steps)
            steps = steps.gather(1, back).masked_fill(~mask.unsqueeze(-1), 0)
        if self.sequences:
            return steps
        memory = (last[0] if isinstance(last, tuple) else last).transpose(0, 1).flatten(1)
        return memory if mask is None else memory.masked_fill(~mask.any(dim=1, keepdim=True), 0)

"""Recurrent layers: declaration and module shared by LSTM and GRU.

A layer declaration (language/layer.py) has the arguments in a `.neural` program as fields; `build`
creates the torch module. Shapes of declarations have no batch axis; E is the width of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import bool_field, int_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, require_known_sizes, require_rank
from neural.nn.lazy_torch import Module, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class RecurrentLayer(Layer):
    """Base class of recurrent layers."""

    torch_class: ClassVar[str] = ""
    """Name of the class in `torch.nn`, "LSTM" or "GRU"."""
    gates: ClassVar[int] = 1
    """Rows of weights per unit: its gates and the candidate state."""
    saved_per_step: ClassVar[int] = 2
    """Values saved for the backward pass, per unit and step."""

    units: int = int_field("Width of the hidden state, in each direction.")
    return_sequences: bool = bool_field(
        "Output the hidden state of every step, not only the last.", default=True
    )
    bidirectional: bool = bool_field(
        "Also read backwards; the outputs of both directions are concatenated.", default=False
    )

    @property
    def uses_mask(self) -> bool:
        """True: the module takes the padding mask, and skips padding."""
        return True

    def shape(self, x: Shape) -> Shape:
        """(time, units) or (units,); twice the units if bidirectional."""
        out = self.units * (1 + self.bidirectional)
        require_rank(
            x,
            2,
            "a sequence, (time, features)",
            assumed_output=("T", out) if self.return_sequences else (out,),
        )
        feature_width(x)  # raises ShapeError if the width is unknown
        return (x[0], out) if self.return_sequences else (out,)

    def cost(self, x: Shape) -> Cost:
        """`gates · (1 + bidirectional) · units · (E + units + 2)` parameters.

        An LSTM has four gates, a GRU three, each with torch's two biases. Activations are the
        values saved for the backward pass: gates and states of each step.
        """
        time, features = require_known_sizes(x)
        directions, rows = 1 + self.bidirectional, self.gates * self.units
        return Cost(
            parameters=directions * rows * (features + self.units + 2),
            multiply_adds=directions * time * rows * (features + self.units),
            activations=directions * time * self.saved_per_step * self.units,
        )

    def build(self, x: Shape) -> RecurrentModule:
        """`nn.LSTM` or `nn.GRU` in a module that takes a padding mask."""
        return RecurrentModule(
            self.torch_class,
            feature_width(x),
            self.units,
            self.bidirectional,
            self.return_sequences,
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """A bidirectional layer."""
        return cls(units=5, bidirectional=True), (7, 3)


class RecurrentModule(Module):
    """`nn.LSTM` or `nn.GRU` (`torch_class` is its name) that skips padding at any position."""

    def __init__(
        self,
        torch_class: str,
        input_size: int,
        hidden_size: int,
        bidirectional: bool,
        return_sequences: bool,
    ) -> None:
        super().__init__()
        # The whole recurrent network, not one time step; the name is part of saved weights.
        self.cell = getattr(nn, torch_class)(
            input_size, hidden_size, batch_first=True, bidirectional=bidirectional
        )
        self.return_sequences = return_sequences

    def forward(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B *T U"]:
        """Hidden state of each step (zeros at padding), or of the last step of each direction."""
        with torch.autocast("cpu", enabled=False):  # few CPUs support recurrent layers in 16 bits
            return self.run_steps(x.to(self.cell.weight_ih_l0.dtype), mask)

    def run_steps(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None
    ) -> Float[Tensor, "B *T U"]:
        """The recurrent network over real steps only; `mask` is True for these."""
        if mask is None:
            steps, last = self.cell(x)
        else:
            # Packed sequences have padding at the end only, but `mask` may have it anywhere: move
            # real steps to the front, and move the outputs back to their positions afterwards.
            order = (~mask).long().argsort(dim=1, stable=True)
            lengths = mask.sum(dim=1).clamp(min=1).cpu()
            compacted = x.gather(1, order.unsqueeze(-1).expand_as(x))
            packed = nn.utils.rnn.pack_padded_sequence(
                compacted, lengths, batch_first=True, enforce_sorted=False
            )
            steps, last = self.cell(packed)
            steps = nn.utils.rnn.pad_packed_sequence(
                steps, batch_first=True, total_length=x.shape[1]
            )[0]
            inverse = order.argsort(dim=1).unsqueeze(-1).expand_as(steps)
            steps = steps.gather(1, inverse).masked_fill(~mask.unsqueeze(-1), 0)
        if self.return_sequences:
            return steps
        hidden = last[0] if isinstance(last, tuple) else last  # an LSTM also has a cell state
        state = hidden.transpose(0, 1).flatten(1)
        return state if mask is None else state.masked_fill(~mask.any(dim=1, keepdim=True), 0)

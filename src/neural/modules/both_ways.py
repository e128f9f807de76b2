"""LSTM layers that read a batch of documents in both directions, each from its own first element to its own last.

Packing (`pack_padded_sequence`) gives the same numbers, but on a processor it leaves the fused kernel: a step of narrow
layers over documents of several lengths takes nine times as long. So each direction reads dense rows here, and for the
way back every document is turned around within its own length: padding always comes last and is never looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import Module, functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


class BothWays(Module):
    """`layers` bidirectional LSTM layers of `units` in each direction, with dropout between them."""

    def __init__(self, inputs: int, units: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        between = dropout if layers > 1 else 0.0
        self.cell = nn.LSTM(inputs, units, layers, batch_first=True, bidirectional=True, dropout=between)

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T U"]:
        """Both memories at every element, zeros at padding; `mask` is True for the first elements of each row."""
        with torch.autocast(x.device.type, enabled=False):   # few processors have recurrence in 16 bits
            x = x.to(next(self.cell.parameters()).dtype)
            if mask is None or bool(mask.all()):
                return self.cell(x)[0]
            lengths = mask.sum(dim=1)
            read = self.turned if x.device.type == "cpu" else self.packed
            return read(x, lengths).masked_fill(~mask.unsqueeze(-1), 0)

    def turned(self, x: Float[Tensor, "B T E"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B T U"]:
        """Layer by layer, direction by direction; anything may stand at padding."""
        back = turning(lengths, x.shape[1])
        for layer in range(self.cell.num_layers):
            if layer:
                x = functional.dropout(x, self.cell.dropout, self.training)
            ahead = self.direction(x, f"l{layer}")
            behind = self.direction(x.gather(1, back.expand_as(x)), f"l{layer}_reverse")
            x = torch.cat((ahead, behind.gather(1, back.expand_as(behind))), dim=-1)
        return x

    def direction(self, x: Float[Tensor, "B T E"], name: str) -> Float[Tensor, "B T H"]:
        """One layer in one direction, from a memory of zeros."""
        weights = [getattr(self.cell, f"{part}_{name}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        empty = x.new_zeros(1, x.shape[0], self.cell.hidden_size)
        return torch.lstm(x, (empty, empty), weights, True, 1, 0.0, self.training, False, True)[0]

    def packed(self, x: Float[Tensor, "B T E"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B T U"]:
        """By packing: what graphics cards are fast at."""
        rows = nn.utils.rnn.pack_padded_sequence(
            x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        return nn.utils.rnn.pad_packed_sequence(self.cell(rows)[0], batch_first=True, total_length=x.shape[1])[0]


def turning(lengths: Int[Tensor, " B"], time: int) -> Int[Tensor, "B T 1"]:
    """Where each element goes when the first `lengths` of every row are turned around and the rest stays."""
    place, last = torch.arange(time, device=lengths.device), lengths.unsqueeze(-1) - 1
    return torch.where(place <= last, last - place, place).unsqueeze(-1)

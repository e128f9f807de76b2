"""Bidirectional LSTM over padded documents of different lengths.

`pack_padded_sequence` gives the same values, but on a CPU torch then runs no fused kernel: a
training step of narrow layers over documents of different lengths takes nine times as long. So on
a CPU each direction runs on padded rows here. For the backward direction each document is reversed
within its own length: padding stays at the end, where it cannot affect the real elements (the
sentences or tokens of a document).

Axes: B documents, T time, E input width, H hidden size, U = 2·H output width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.lazy_torch import Module, functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


class BiLSTM(Module):
    """`num_layers` bidirectional LSTM layers, `hidden_size` per direction, dropout between them."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        # The whole LSTM, not one time step; the name is part of saved weights.
        self.cell = nn.LSTM(
            input_size,
            hidden_size,
            num_layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )

    def forward(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T U"]:
        """Hidden states of both directions, zeros at padding.

        `mask` is True for the elements of a document, which are the first of each row.
        """
        # Few CPUs support recurrent layers in 16 bits.
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(next(self.cell.parameters()).dtype)
            if mask is None or bool(mask.all()):
                return self.cell(x)[0]
            lengths = mask.sum(dim=1)
            run = self.run_reversed if x.device.type == "cpu" else self.run_packed
            return run(x, lengths).masked_fill(~mask.unsqueeze(-1), 0)

    def run_reversed(
        self, x: Float[Tensor, "B T E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T U"]:
        """Output of all layers on padded rows, one layer and direction at a time, for the CPU.

        Values at padding are arbitrary.
        """
        reversal = reversal_indices(lengths, x.shape[1])
        for layer in range(self.cell.num_layers):
            if layer:
                x = functional.dropout(x, self.cell.dropout, self.training)
            forward = self.run_direction(x, f"l{layer}")
            backward = self.run_direction(x.gather(1, reversal.expand_as(x)), f"l{layer}_reverse")
            backward = backward.gather(1, reversal.expand_as(backward))
            x = torch.cat((forward, backward), dim=-1)
        return x

    def run_direction(self, x: Float[Tensor, "B T E"], name: str) -> Float[Tensor, "B T H"]:
        """One layer in one direction, with an initial state of zeros.

        `name` is torch's suffix of the weights: `l0`, `l0_reverse`, `l1`, …
        """
        weights = [
            getattr(self.cell, f"{kind}_{name}")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        zeros = x.new_zeros(1, x.shape[0], self.cell.hidden_size)
        # has_biases, num_layers, dropout, train, bidirectional, batch_first
        return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, self.training, False, True)[0]

    def run_packed(
        self, x: Float[Tensor, "B T E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T U"]:
        """Output of all layers on packed sequences, which are fast on GPUs."""
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        return nn.utils.rnn.pad_packed_sequence(
            self.cell(packed)[0], batch_first=True, total_length=x.shape[1]
        )[0]


def reversal_indices(lengths: Int[Tensor, " B"], time: int) -> Int[Tensor, "B T 1"]:
    """Indices that reverse the first `lengths` elements of each row and keep the others."""
    index, last = torch.arange(time, device=lengths.device), lengths.unsqueeze(-1) - 1
    return torch.where(index <= last, last - index, index).unsqueeze(-1)

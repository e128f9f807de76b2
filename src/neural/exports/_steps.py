"""Recurrence as a loop that can be traced for any length: torch's own is unrolled, step by step, for one.

Padding is stepped over, wherever it stands: the memory stays as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural.modules.both_ways import BothWays
from neural.modules.late import Module, late, torch
from neural.modules.recurrence import Recurrence

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

scanning = late("torch._higher_order_ops.scan")


class Stepped(Module):
    """The same numbers as a `Recurrence` or `BothWays` with these weights, when predicting."""

    def __init__(self, recurrent: Recurrence | BothWays) -> None:
        super().__init__()
        self.cell: Any = recurrent.cell
        self.sequences = getattr(recurrent, "sequences", True)

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B *T U"]:
        """The memory after each step, zeros at padding; or after the last one read in each direction."""
        last: list[Tensor] = []
        for layer in range(self.cell.num_layers):
            ways = ("", "_reverse") if self.cell.bidirectional else ("",)
            read = [self.read(x, mask, f"l{layer}{way}", back=bool(way)) for way in ways]
            x, last = torch.cat([steps for steps, _ in read], dim=-1), [end for _, end in read]
        if not self.sequences:
            return torch.cat(last, dim=-1)
        return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0)

    def read(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None, name: str, *, back: bool
    ) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
        """One layer in one direction: the memory after each step and after the last."""
        into, over, shift, lift = (
            getattr(self.cell, f"{part}_{name}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        real = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        come, real = (x @ into.T + shift).transpose(0, 1), real.transpose(0, 1).unsqueeze(-1)
        if back:
            come, real = come.flip(0), real.flip(0)
        empty = x.new_zeros(x.shape[0], over.shape[1])
        step = lstm_step if self.cell.mode == "LSTM" else gru_step

        def walk(memory: tuple[Tensor, ...], now: tuple[Tensor, Tensor]) -> tuple[tuple[Tensor, ...], Tensor]:
            come, real = now
            new = step(memory, come, memory[0] @ over.T + lift)
            new = tuple(torch.where(real, one, old) for one, old in zip(new, memory, strict=True))
            return new, new[0].clone()

        begin = (empty, empty.clone()) if self.cell.mode == "LSTM" else (empty,)
        memory, steps = scanning.scan(walk, begin, (come, real), dim=0)
        return (steps.flip(0) if back else steps).transpose(0, 1), memory[0]


def lstm_step(memory: tuple[Tensor, ...], come: Tensor, kept: Tensor) -> tuple[Tensor, ...]:
    """Hochreiter and Schmidhuber (1997), with torch's order of the gates."""
    enter, forget, new, leave = (come + kept).chunk(4, dim=-1)
    inner = forget.sigmoid() * memory[1] + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * inner.tanh(), inner


def gru_step(memory: tuple[Tensor, ...], come: Tensor, kept: Tensor) -> tuple[Tensor, ...]:
    """Cho et al. (2014), with torch's order of the gates."""
    (reset, update, new), (old_reset, old_update, old) = come.chunk(3, dim=-1), kept.chunk(3, dim=-1)
    reset, update = (reset + old_reset).sigmoid(), (update + old_update).sigmoid()
    return ((1 - update) * (new + reset * old).tanh() + update * memory[0],)

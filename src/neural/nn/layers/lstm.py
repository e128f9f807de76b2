"""Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

from __future__ import annotations

from typing import ClassVar

from neural.nn.recurrent import RecurrentLayer


class LSTM(RecurrentLayer):
    """Long short-term memory: recurrent layer with input, forget and output gates."""

    cell: ClassVar[str] = "LSTM"
    gates: ClassVar[int] = 4
    saved_per_step: ClassVar[int] = 8

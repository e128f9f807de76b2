"""Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

from __future__ import annotations

from typing import ClassVar

from neural.modules.recurrence import Recurrent


class LSTM(Recurrent):
    """Reads a sequence step by step; gates decide what to keep, to forget and to show."""

    cell: ClassVar[str] = "LSTM"
    gates: ClassVar[int] = 4
    kept: ClassVar[int] = 8

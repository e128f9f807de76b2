"""Gated recurrent unit (Cho et al., 2014)."""

from __future__ import annotations

from typing import ClassVar

from neural.modules.recurrence import Recurrent


class GRU(Recurrent):
    """Reads a sequence step by step; two gates decide what to keep and what to take in."""

    cell: ClassVar[str] = "GRU"
    gates: ClassVar[int] = 3
    kept: ClassVar[int] = 9

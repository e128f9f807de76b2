"""Gated recurrent unit (Cho et al., 2014)."""

from __future__ import annotations

from typing import ClassVar

from neural.nn.recurrent import RecurrentLayer


class GRU(RecurrentLayer):
    """Gated recurrent unit: recurrent layer with reset and update gates."""

    cell: ClassVar[str] = "GRU"
    gates: ClassVar[int] = 3
    saved_per_step: ClassVar[int] = 9

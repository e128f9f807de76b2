"""Gated recurrent unit (Cho et al., 2014).

recurrent.py has the layer: `torch_class` is the class of torch.nn, `gates` includes the candidate
state, `saved_per_step` is the number of values per unit and step that torch saves for the backward
pass.
"""

from __future__ import annotations

from typing import ClassVar

from neural.nn.recurrent import RecurrentLayer


class GRU(RecurrentLayer):
    """Gated recurrent unit: recurrent layer with reset and update gates."""

    torch_class: ClassVar[str] = "GRU"
    gates: ClassVar[int] = 3
    saved_per_step: ClassVar[int] = 9

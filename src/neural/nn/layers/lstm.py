"""Long short-term memory (Hochreiter and Schmidhuber, 1997).

recurrent.py has the layer: `torch_class` is the class of torch.nn, `gates` includes the candidate
of the cell state, `saved_per_step` is the number of values per unit and step that torch saves for
the backward pass.
"""

from __future__ import annotations

from typing import ClassVar

from neural.nn.recurrent import RecurrentLayer


class LSTM(RecurrentLayer):
    """Long short-term memory: recurrent layer with input, forget and output gates."""

    torch_class: ClassVar[str] = "LSTM"
    gates: ClassVar[int] = 4
    saved_per_step: ClassVar[int] = 8

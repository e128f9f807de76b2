"""Annealed Rényi loss: its order τ falls during training.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
The Rényi losses (_marginal.py) are a family: τ = 0 is hard attention, τ = 1 the marginal
likelihood, and larger τ give the best segment more weight. A large τ finds the deciding segment
faster, a small one sharpens the focus on it faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.tasks.focus.paradigms._marginal import MarginalParadigm
from neural.tasks.focus.paradigms.renyi import Renyi

if TYPE_CHECKING:
    from neural.tasks.focus.paradigm import Paradigm, ParadigmProgress


class Annealed(MarginalParadigm):
    """Rényi loss whose order τ falls linearly, a gradual alternative to `hybrid`."""

    start: float = float_field("τ at the first step.", default=2.0, at_least=0, at_most=100)
    end: float = float_field("τ from `until` on.", default=0.0, at_least=0, at_most=100)
    until: float = float_field(
        "Share of the training after which τ is constant.", default=0.5, above=0, at_most=1
    )

    def at_progress(self, progress: ParadigmProgress) -> Paradigm:
        """The Rényi loss with the τ for this progress of the training."""
        remaining = max(0.0, 1.0 - progress.fraction / self.until)
        return Renyi(tau=self.end + (self.start - self.end) * remaining)

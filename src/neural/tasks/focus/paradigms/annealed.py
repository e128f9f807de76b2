"""Annealed Rényi loss: τ falls during training, from marginal likelihood to hard attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.tasks.focus.paradigms._marginal import MarginalParadigm
from neural.tasks.focus.paradigms.renyi import Renyi

if TYPE_CHECKING:
    from neural.tasks.focus.paradigm import Paradigm, ParadigmProgress


class Annealed(MarginalParadigm):
    """Rényi loss with τ falling linearly; needs no switch."""

    start: float = float_field("τ at the first step.", default=2.0, at_least=0, at_most=100)
    end: float = float_field("τ from `until` on.", default=0.0, at_least=0, at_most=100)
    until: float = float_field(
        "Share of the training after which τ is constant.", default=0.5, above=0, at_most=1
    )

    def at_progress(self, progress: ParadigmProgress) -> Paradigm:
        """The Rényi loss with the τ of this progress."""
        remaining = max(0.0, 1.0 - progress.fraction / self.until)
        return Renyi(tau=self.end + (self.start - self.end) * remaining)

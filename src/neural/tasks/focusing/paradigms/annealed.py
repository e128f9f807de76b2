"""The Rényi parameter falls while the model learns: from beyond the marginal likelihood towards hard attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.tasks.focusing.paradigms._marginal import Marginal
from neural.tasks.focusing.paradigms.renyi import Renyi

if TYPE_CHECKING:
    from neural.tasks.focusing.paradigm import Moment, Paradigm


class Annealed(Marginal):
    """Every stage by the τ that is best for it; no switch to find."""

    start: float = number("τ at the first step.", default=2.0, at_least=0, at_most=100)
    end: float = number("τ from `until` on.", default=0.0, at_least=0, at_most=100)
    until: float = number("Share of the training after which τ stays.", default=0.5, above=0, at_most=1)

    def at(self, moment: Moment) -> Paradigm:
        """τ falls in a straight line."""
        left = max(0.0, 1.0 - moment.share / self.until)
        return Renyi(tau=self.end + (self.start - self.end) * left)

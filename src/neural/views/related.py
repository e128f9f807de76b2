"""What the analyses that ask for a correlation share: two curves of every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.tracking.run import Run
from neural.views.correlation import Curve, correlate
from neural.views.finding import Analysis, Finding, Supported
from neural.views.reading import loss_curve, mean_curve


class Related(Analysis):
    """Whether two curves are related beyond what all seeds share; see views/correlation.py.

    The number is the Spearman correlation of the changes, beyond that of different seeds: −1 to 1.
    """

    unit: ClassVar[str] = "Spearman"
    advice: ClassVar[str] = "more seeds and more steps at which both are measured narrow the interval"
    sign: ClassVar[int] = 0
    """That the claim wants: −1, 1, or 0 for any."""

    def curves(self, run: Run) -> tuple[Curve, Curve]:
        """Of one seed."""
        raise NotImplementedError

    def examine(self, runs: Sequence[Run]) -> Finding:
        """As the correlation says, and in the direction that was claimed."""
        found = correlate([self.curves(run) for run in runs])
        supported: Supported = "undecided"
        if found.verdict == "related":
            supported = "yes" if found.own.value * self.sign >= 0 else "no"
        elif found.verdict == "unrelated":
            supported = "no"
        return self.found(supported, found.own, str(found))


class RelatedToLoss(Related):
    """The mean of a measure of attention, and the validation loss."""

    measure: ClassVar[str]

    def curves(self, run: Run) -> tuple[Curve, Curve]:
        """At the steps that have both a look and a validation."""
        return mean_curve(run, self.measure), loss_curve(run)

"""What an analysis says: a claim, whether these runs support it, and the number behind that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from neural.language.declaration import Named
from neural.tracking.run import Run
from neural.views.reading import Missing, one_per_seed
from neural.views.seeds import FEWEST, Estimate, over_seeds

Supported = Literal["yes", "no", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One claim and what the runs say about it."""

    code: str
    claim: str
    supported: Supported
    number: Estimate
    """Over seeds."""
    unit: str
    evidence: str
    """In words, with names and numbers."""
    advice: str = ""
    """An experiment that would tell more."""

    @property
    def figure(self) -> str:
        """The number with its interval and its unit; a dash where there is none."""
        return f"{self.number} {self.unit}" if math.isfinite(self.number.value) else "–"

    def as_json(self) -> dict[str, Any]:
        """Plain values; null where there is no number."""
        return {**asdict(self), "number": self.number.as_json()}


class Analysis(Named):
    """A question to runs that differ by their seed alone. An entry is a file in views/analysis/."""

    code: ClassVar[str]
    """Stable: reports and people refer to it."""
    claim: ClassVar[str]
    """What is tested, as a sentence without a full stop."""
    unit: ClassVar[str]
    """Of the number."""
    advice: ClassVar[str] = ""

    def analyze(self, runs: Sequence[Run]) -> Finding | None:
        """The finding; None where there is nothing to say, undecided where the runs lack what it needs."""
        try:
            return self.examine(one_per_seed(runs))
        except Missing as missing:
            return self.found("undecided", over_seeds([]), str(missing))

    def examine(self, runs: Sequence[Run]) -> Finding | None:
        """The finding, of runs with different seeds; Missing where something was not measured."""
        raise NotImplementedError

    def found(self, supported: Supported, number: Estimate, evidence: str) -> Finding:
        """With the code, the claim and the unit of this analysis; fewer than five seeds decide nothing."""
        if number.seeds < FEWEST and number.seeds:
            supported = "undecided"
            if not evidence.startswith("too few"):
                evidence = f"too few seeds ({number.seeds}; at least {FEWEST}); {evidence}"
        return Finding(
            code=self.code, claim=self.claim, supported=supported, number=number, unit=self.unit, evidence=evidence,
            advice=self.advice,
        )  # fmt: skip


def above(number: Estimate, border: float = 0.0) -> Supported:
    """Whether all of the interval lies above: yes; all of it below: no."""
    return "yes" if number.low > border else "no" if number.high < border else "undecided"


def below(number: Estimate, border: float = 0.0) -> Supported:
    """The other way round."""
    return "yes" if number.high < border else "no" if number.low > border else "undecided"

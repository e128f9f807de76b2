"""What an analysis says: a claim, whether these runs support it, and the number behind that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from neural.language.declaration import Named
from neural.tracking.run import Run
from neural.views.reading import Missing, one_per_seed
from neural.views.seeds import FEWEST, Estimate, over_seeds

Supported = Literal["yes", "no", "undecided"]
Kind = Literal["claim", "warning", "note"]
"""A claim is about trainings of this kind and takes several seeds; a warning or a note is about these very runs."""
SHOWN = 3
"""Runs that a warning quotes."""


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
    kind: Kind = "claim"

    @property
    def amount(self) -> str:
        """The number with its interval and its unit, shares in percent; a dash where there is none."""
        if not math.isfinite(self.number.value):
            return "–"
        share = self.unit.startswith("of ")   # "1 of the heads" would be one head
        return f"{self.number.in_percent()} % {self.unit}" if share else f"{self.number} {self.unit}"

    @property
    def figure(self) -> str:
        """The same, and of a claim the seeds that it rests on."""
        if self.kind != "claim" or not math.isfinite(self.number.value):
            return self.amount
        return f"{self.amount}, {self.number.seeds} seed{'s' * (self.number.seeds != 1)}"

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
    kind: ClassVar[Kind] = "claim"

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


class Symptom(NamedTuple):
    """What one run shows."""

    number: float
    evidence: str
    """In words, with names and numbers."""


class Diagnosis(Analysis):
    """A question to each run by itself: a fact about it, whatever other seeds do; nothing is said where it is well."""

    kind: ClassVar[Kind] = "warning"

    def symptom(self, run: Run) -> Symptom | None:
        """What the run shows; None where it has it not, Missing where that was not measured."""
        raise NotImplementedError

    def examine(self, runs: Sequence[Run]) -> Finding | None:
        """Found where at least one run shows it; the number is the mean over those that do."""
        shown, missing = [], list[Missing]()
        for run in runs:
            try:
                shown.append((run, self.symptom(run)))
            except Missing as why:
                missing.append(why)
        if runs and not shown:
            raise missing[0]
        having = [(run, one) for run, one in shown if one is not None]
        if not having:
            return None
        said = [one.evidence if len(runs) == 1 else f"{run.name}: {one.evidence}" for run, one in having[:SHOWN]]
        more = [f"and {len(having) - SHOWN} more"] if len(having) > SHOWN else []
        start = "" if len(runs) == 1 else f"{len(having)} of {len(shown)} runs; "
        return self.found("yes", over_seeds(one.number for _, one in having), start + "; ".join([*said, *more]))

    def found(self, supported: Supported, number: Estimate, evidence: str) -> Finding:
        """As it is: one run is enough to show what it shows."""
        return Finding(
            code=self.code, claim=self.claim, supported=supported, number=number, unit=self.unit, evidence=evidence,
            advice=self.advice, kind=self.kind,
        )  # fmt: skip


def above(number: Estimate, border: float = 0.0) -> Supported:
    """Whether all of the interval lies above: yes; all of it below: no."""
    return "yes" if number.low > border else "no" if number.high < border else "undecided"


def below(number: Estimate, border: float = 0.0) -> Supported:
    """The other way round."""
    return "yes" if number.high < border else "no" if number.low > border else "undecided"

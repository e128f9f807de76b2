"""Base classes of analysis checks, and their result: a claim with verdict, number and evidence.

A check reads runs (folders of trainings) that differ only by their seed. A snapshot is their
attention, measured at one training step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from neural.analysis.confidence_intervals import MIN_SEEDS, SeedEstimate, estimate_mean
from neural.analysis.correlation import Curve, correlate
from neural.analysis.run_loading import (
    MissingDataError,
    load_loss_curve,
    load_mean_curve,
    select_one_per_seed,
)
from neural.language.declaration import LowercaseDeclaration
from neural.runs.run import Run

Supported = Literal["yes", "no", "undecided"]
FindingKind = Literal["claim", "warning", "note"]
"""A claim generalises over seeds and needs several; a warning or a note is about these runs."""
MAX_QUOTED_RUNS = 3
"""Runs quoted in the evidence of a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of a check: a claim, whether the runs support it, and the number behind that."""

    code: str
    """Of the check, such as EVO001."""
    claim: str
    supported: Supported
    number: SeedEstimate
    """Estimate over seeds, in `unit`."""
    unit: str
    evidence: str
    """A sentence with names and numbers."""
    advice: str = ""
    """What to do, or an experiment that would decide."""
    kind: FindingKind = "claim"

    @property
    def formatted_value(self) -> str:
        """The number with interval and unit, shares in percent; a dash for NaN."""
        if not math.isfinite(self.number.value):
            return "–"
        if self.unit.startswith("of "):  # "1 of the heads" would read as one head
            return f"{self.number.to_percent()} % {self.unit}"
        return f"{self.number} {self.unit}"

    @property
    def formatted_estimate(self) -> str:
        """The formatted value; for a claim, with the number of seeds."""
        if self.kind != "claim" or not math.isfinite(self.number.value):
            return self.formatted_value
        return f"{self.formatted_value}, {self.number.seeds} seed{'s' * (self.number.seeds != 1)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON data; NaN becomes None."""
        return {**asdict(self), "number": self.number.to_dict()}


class AnalysisCheck(LowercaseDeclaration):
    """Base class of checks of runs that differ only by their seed.

    An entry of the registry is a file in analysis/checks/, named as the class in snake case.
    """

    code: ClassVar[str]
    """Letters for the topic and a number; never changed, because reports and people quote it."""
    claim: ClassVar[str]
    """The tested statement, without a full stop."""
    unit: ClassVar[str]
    """Unit of the finding's number."""
    advice: ClassVar[str] = ""
    kind: ClassVar[FindingKind] = "claim"

    def analyze(self, runs: Sequence[Run]) -> Finding | None:
        """The finding; None if there is nothing to report, "undecided" where the runs lack data."""
        try:
            return self.check_runs(select_one_per_seed(runs))
        except MissingDataError as missing:
            return self.create_finding("undecided", estimate_mean([]), str(missing))

    def check_runs(self, runs: Sequence[Run]) -> Finding | None:
        """The finding about runs with different seeds; MissingDataError where data is missing."""
        raise NotImplementedError

    def create_finding(self, supported: Supported, number: SeedEstimate, evidence: str) -> Finding:
        """A finding with code, claim and unit of this check; undecided below five seeds."""
        if number.seeds < MIN_SEEDS and number.seeds:
            supported = "undecided"
            if not evidence.startswith("too few"):
                evidence = f"too few seeds ({number.seeds}; at least {MIN_SEEDS}); {evidence}"
        return Finding(
            code=self.code,
            claim=self.claim,
            supported=supported,
            number=number,
            unit=self.unit,
            evidence=evidence,
            advice=self.advice,
        )


class Symptom(NamedTuple):
    """A problem that one run shows."""

    number: float
    """How large it is, in the unit of the check."""
    evidence: str
    """A sentence with names and numbers."""


class DiagnosticCheck(AnalysisCheck):
    """Base class of checks of each run by itself. Runs without the symptom give no finding."""

    kind: ClassVar[FindingKind] = "warning"

    def find_symptom(self, run: Run) -> Symptom | None:
        """The symptom, or None; MissingDataError where the data was not recorded."""
        raise NotImplementedError

    def check_runs(self, runs: Sequence[Run]) -> Finding | None:
        """Supported if at least one run has the symptom; the number is the mean over those runs."""
        checked, missing = [], list[MissingDataError]()
        for run in runs:
            try:
                checked.append((run, self.find_symptom(run)))
            except MissingDataError as error:
                missing.append(error)
        if runs and not checked:
            raise missing[0]
        affected = [(run, symptom) for run, symptom in checked if symptom is not None]
        if not affected:
            return None
        quotes = [
            symptom.evidence if len(runs) == 1 else f"{run.name}: {symptom.evidence}"
            for run, symptom in affected[:MAX_QUOTED_RUNS]
        ]
        if len(affected) > MAX_QUOTED_RUNS:
            quotes.append(f"and {len(affected) - MAX_QUOTED_RUNS} more")
        count = "" if len(runs) == 1 else f"{len(affected)} of {len(checked)} runs; "
        number = estimate_mean(symptom.number for _, symptom in affected)
        return self.create_finding("yes", number, count + "; ".join(quotes))

    def create_finding(self, supported: Supported, number: SeedEstimate, evidence: str) -> Finding:
        """A finding with any number of seeds: one run is enough for a fact about itself."""
        return Finding(
            code=self.code,
            claim=self.claim,
            supported=supported,
            number=number,
            unit=self.unit,
            evidence=evidence,
            advice=self.advice,
            kind=self.kind,
        )


def decide_above(estimate: SeedEstimate, threshold: float = 0.0) -> Supported:
    """ "yes" if the whole interval lies above the threshold, "no" if it lies below."""
    return "yes" if estimate.low > threshold else "no" if estimate.high < threshold else "undecided"


def decide_below(estimate: SeedEstimate, threshold: float = 0.0) -> Supported:
    """ "yes" if the whole interval lies below the threshold, "no" if it lies above."""
    return "yes" if estimate.high < threshold else "no" if estimate.low > threshold else "undecided"


class CorrelationCheck(AnalysisCheck):
    """Whether two curves of each run are related beyond the trend that all seeds share.

    See analysis/correlation.py. The number is the Spearman correlation of the changes, minus that
    of different seeds: −1 to 1.
    """

    unit: ClassVar[str] = "Spearman"
    advice: ClassVar[str] = (
        "more seeds and more steps at which both are measured narrow the interval"
    )
    expected_sign: ClassVar[int] = 0
    """Sign of the claimed correlation: −1, 1, or 0 for any."""

    def load_curves(self, run: Run) -> tuple[Curve, Curve]:
        """Both curves of one seed."""
        raise NotImplementedError

    def check_runs(self, runs: Sequence[Run]) -> Finding:
        """Supported if the curves are related with the claimed sign."""
        correlation = correlate([self.load_curves(run) for run in runs])
        supported: Supported = "undecided"
        if correlation.verdict == "related":
            supported = "yes" if correlation.excess.value * self.expected_sign >= 0 else "no"
        elif correlation.verdict == "unrelated":
            supported = "no"
        return self.create_finding(supported, correlation.excess, str(correlation))


class LossCorrelationCheck(CorrelationCheck):
    """Correlation of the mean of an attention measure with the validation loss."""

    measure_name: ClassVar[str]
    """File name of the measure in capture/measures/."""

    def load_curves(self, run: Run) -> tuple[Curve, Curve]:
        """The mean of the measure, and the validation loss."""
        return load_mean_curve(run, self.measure_name), load_loss_curve(run)

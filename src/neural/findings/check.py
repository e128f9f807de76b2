"""Base classes of analysis checks, and their result: a claim with verdict, number and evidence.

A check tests one statement, its claim, on runs: folders of trainings that differ only by their
seed. A curve is a series of values by training step. An attention measure is a statistic of
attention weights that was recorded during training (capture/measures/).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

from neural.findings.head_roles import format_head
from neural.findings.record import Record
from neural.findings.run_loading import (
    MissingDataError,
    count_attention_layers,
    get_seed,
    has_attention,
    is_capture,
    load_loss_curve,
    load_mean_curve,
    select_one_per_seed,
)
from neural.language.declaration import RegistryEntry
from neural.stats.correlation import Curve, correlate
from neural.stats.estimate import Estimate
from neural.stats.means import MIN_SEEDS, estimate_mean

Supported = Literal["yes", "no", "undecided"]
FindingKind = Literal["claim", "warning", "note"]
"""A claim generalises over seeds and needs several; a warning or a note is about these runs."""
Importance = Literal["high", "medium", "low", "none"]
"""How much a finding matters to the user of the run; the order of the advice (advice.py).

high: the model learned little or nothing. medium: another training would give a better model. low:
the network may be smaller or clearer. none: an observation, with nothing to do about the run.
"""
ATTENTION_TOPICS = ("ATT", "EVO")
"""Letters of the codes of checks that are about attention."""
MAX_QUOTED_RUNS = 3
"""Runs quoted in the evidence of a warning; further ones are only counted."""

FigureData = dict[str, Any]
"""Data of a picture on the page: `kind` is the name of a file in web/src/figures/.

All values are JSON data. Only a run is given as the record itself: `add_figures` (findings.py)
replaces it by the id that the run has on the page.
"""


class ViewLink(NamedTuple):
    """A link to a view of the page, such as one head at one step."""

    text: str
    route: dict[str, Any]
    """Keys of the page's address: pane, run, step, layer, head, query."""


class Symptom(NamedTuple):
    """The problem that a check found in one run; for checks of kind "note", the fact."""

    number: float
    """How large it is, in the unit of the check."""
    evidence: str
    """A sentence with names and numbers."""
    advice: str = ""
    """What to do about this run, such as a key with its value; the check's own advice if empty."""
    importance: Importance | None = None
    """How much it matters in this run; as much as the check says if None."""
    text: str = ""
    """The number as a reader would say it, such as "5 of 16 heads"; number and unit if empty."""
    figure: FigureData | None = None
    """Picture of this run's symptom, without the key `run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of a check: a claim, whether the runs support it, and the number behind that."""

    code: str
    """Code of the check, such as EVO001."""
    claim: str
    supported: Supported
    number: Estimate
    """Mean over seeds with its 95 % interval, in `unit`."""
    unit: str
    """As in `AnalysisCheck.unit`."""
    evidence: str
    """A sentence with names and numbers."""
    advice: str = ""
    """What to do, or an experiment that would decide."""
    kind: FindingKind = "claim"
    importance: Importance = "none"
    figure: FigureData | None = None
    """Picture of the finding on the page."""
    links: tuple[ViewLink, ...] = ()
    """Views of the page that show what the finding is about."""
    text: str = ""
    """The number of a single run as a reader would say it: "5 of 16 heads"."""
    missing: str = ""
    """Why there is no verdict: "needs 5 seeds, has 1"; the evidence says it if empty."""
    symptoms: tuple[tuple[Record, Symptom], ...] = field(default=(), repr=False, compare=False)
    """For warnings and notes, the affected runs with their symptoms; not part of the JSON data."""

    @property
    def formatted_value(self) -> str:
        """The number with interval and unit, shares in percent; a dash for NaN."""
        if self.text:
            return self.text
        if not math.isfinite(self.number.value):
            return "–"
        if self.unit.startswith("of "):  # a share: "1 of the heads" would read as one head
            return f"{self.number.to_percent()} % {self.unit}"
        return f"{self.number} {self.unit}"

    @property
    def formatted_estimate(self) -> str:
        """The formatted value, with the number of seeds or runs that it is the mean of."""
        if not math.isfinite(self.number.value):
            return self.formatted_value
        if self.kind != "claim":
            count = self.number.n
            return self.formatted_value + (f", mean of {count} runs" if count > 1 else "")
        return f"{self.formatted_value}, {self.number.n} seed{'s' * (self.number.n != 1)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON data; NaN becomes None."""
        return {
            **{
                entry.name: getattr(self, entry.name)
                for entry in fields(self)
                if entry.name != "symptoms"
            },
            "number": self.number.to_dict("seeds"),
            "links": [link._asdict() for link in self.links],
        }


class AnalysisCheck(RegistryEntry):
    """Base class of checks of runs that differ only by their seed.

    An entry of the registry is a file in findings/checks/, named as the class in snake case. The
    class docstring says what is reported or tested, and what the finding's number is.
    """

    code: ClassVar[str]
    """Letters for the topic and a number; never changed, because reports and people quote it.

    ATT attention heads, CAU what happens without heads, EVO evolution of attention in training,
    FOC focus, TRN training.
    """
    claim: ClassVar[str]
    """The tested statement, without a full stop."""
    unit: ClassVar[str]
    """Unit of the finding's number, printed after it: "nats", "positions".

    A unit that starts with "of ", such as "of the heads", marks a share from 0 to 1. It is printed
    in percent: "25 % of the heads".
    """
    advice: ClassVar[str] = ""
    """What to do about the finding, or how to get a clearer one.

    A command or a key to set, where there is one. `Symptom.advice` replaces it for one run.
    """
    kind: ClassVar[FindingKind] = "claim"
    importance: ClassVar[Importance] = "none"
    """Place of the finding in the advice of `neural analyze`; "none" keeps it out."""
    has_sign: ClassVar[bool] = True
    """Whether the sign of the number decides the claim, so that 0 is neither yes nor no."""
    min_layers: ClassVar[int] = 1
    """Layers with attention that a check of attention needs, such as 2 to compare layers."""

    needs_training: ClassVar[bool] = False
    """Whether it reads scores or weights: nothing is said about captures, which have none."""

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Whether the check is about this kind of run; if not, nothing is said about it.

        Checks of attention (codes ATT… and EVO…) are for runs in which attention was measured, in
        at least `min_layers` layers.
        """
        if not cls.code.startswith(ATTENTION_TOPICS):
            return True
        layers = count_attention_layers(run)
        # old runs may have measures but not the list of layers: they are not left out
        return has_attention(run) and (not layers or layers >= cls.min_layers)

    def build_figure(self, finding: Finding, runs: Sequence[Record]) -> FigureData | None:
        """The picture of a finding of this check about `runs`; None if it has none.

        Called only for pages. By default the number with its interval, beside 0.
        """
        if not math.isfinite(finding.number.value):
            return None
        count = finding.number.n
        label = f"mean of {count} seeds" if count > 1 else "1 seed"
        return {
            "kind": "estimates",
            "unit": finding.unit,
            "reference": 0,
            "rows": [{"label": label, "number": finding.number.to_dict("seeds")}],
        }

    def list_links(self, finding: Finding, runs: Sequence[Record]) -> list[ViewLink]:
        """Views of the page that show what a finding of this check is about."""
        return []

    def analyze(self, runs: Sequence[Record]) -> Finding | None:
        """The finding; None if there is nothing to report, "undecided" where the runs lack data."""
        try:
            return self.check_runs(select_one_per_seed(runs))
        except MissingDataError as missing:
            return self.create_finding("undecided", estimate_mean([]), str(missing))

    def check_runs(self, runs: Sequence[Record]) -> Finding | None:
        """The finding about runs with different seeds; MissingDataError where data is missing."""
        raise NotImplementedError

    def create_finding(self, supported: Supported, number: Estimate, evidence: str) -> Finding:
        """A finding with code, claim and unit of this check; undecided below five seeds."""
        missing = ""
        # without any seed, the evidence already says which data is missing
        if number.n < MIN_SEEDS and number.n:
            supported, missing = "undecided", describe_missing_seeds(number.n)
            if not evidence.startswith(missing):  # the text of a Correlation says it already
                evidence = f"{missing}; {evidence}"
        elif supported == "undecided" and self.has_sign and number.low <= 0 <= number.high:
            missing = "the interval contains 0"
        return Finding(
            code=self.code,
            claim=self.claim,
            supported=supported,
            number=number,
            unit=self.unit,
            evidence=evidence,
            advice=self.advice,
            missing=missing,
        )


class DiagnosticCheck(AnalysisCheck):
    """Base class of checks that look for a symptom in each run by itself.

    There is no finding if no run has the symptom.
    """

    kind: ClassVar[FindingKind] = "warning"
    importance: ClassVar[Importance] = "low"

    def build_figure(self, finding: Finding, runs: Sequence[Record]) -> FigureData | None:
        """The picture of the first affected run; None if its symptom has none."""
        for run, symptom in finding.symptoms:
            if symptom.figure is not None:
                return {**symptom.figure, "run": run}
        return None

    def list_links(self, finding: Finding, runs: Sequence[Record]) -> list[ViewLink]:
        """Views of the heads that the picture marks, at the step of its maps."""
        figure = self.build_figure(finding, runs) or {}
        return [
            ViewLink(
                format_head(mark["layer"], mark["head"]),
                {
                    "pane": "attention",
                    "run": figure["run"],
                    **({"step": figure["step"]} if figure.get("step") is not None else {}),
                    "layer": mark["layer"],
                    "head": mark["head"],
                },
            )
            for mark in figure.get("marks", ())
            if "head" in mark
        ]

    def find_symptom(self, run: Record) -> Symptom | None:
        """The symptom, or None; MissingDataError where the data was not recorded."""
        raise NotImplementedError

    def check_runs(self, runs: Sequence[Record]) -> Finding | None:
        """Supported if at least one run has the symptom; the number is the mean over those runs.

        It has no interval: runs that were selected by their symptom say nothing about other seeds.
        MissingDataError if no run has the data.
        """
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
        names = _name_runs(runs)
        quotes = [
            symptom.evidence if len(runs) == 1 else f"{names[id(run)]}: {symptom.evidence}"
            for run, symptom in affected[:MAX_QUOTED_RUNS]
        ]
        if len(affected) > MAX_QUOTED_RUNS:
            quotes.append(f"and {len(affected) - MAX_QUOTED_RUNS} more")
        count = "" if len(runs) == 1 else f"{len(affected)} of {len(checked)} runs; "
        mean = estimate_mean(symptom.number for _, symptom in affected)
        number = Estimate(mean.value, n=mean.n)
        finding = self.create_finding("yes", number, count + "; ".join(quotes))
        # one advice for all runs: that of the first, because they differ only by their seed
        first_run, first = affected[0]
        # what heads do on one input is no reason to change the model
        has_advice = not (self.code.startswith(ATTENTION_TOPICS) and is_capture(first_run))
        return replace(
            finding,
            advice=(first.advice or self.advice) if has_advice else "",
            importance=(first.importance or self.importance) if has_advice else "none",
            text=first.text if len(affected) == 1 else "",
            symptoms=tuple(affected),
        )

    def create_finding(self, supported: Supported, number: Estimate, evidence: str) -> Finding:
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
            importance=self.importance,
        )


def _name_runs(runs: Sequence[Record]) -> dict[int, str]:
    """Short names of runs by `id`: their seeds, or the names of their folders if seeds repeat."""
    seeds = [get_seed(run) for run in runs]
    is_unique = None not in seeds and len(set(seeds)) == len(seeds)
    return {
        id(run): f"seed {seed}" if is_unique else run.name
        for run, seed in zip(runs, seeds, strict=True)
    }


def describe_missing_seeds(seeds: int) -> str:
    """What a claim lacks that was tested with fewer than MIN_SEEDS seeds."""
    return f"needs {MIN_SEEDS} seeds, has {seeds}"


def decide_above(estimate: Estimate, threshold: float = 0.0) -> Supported:
    """ "yes" if the whole interval lies above the threshold, "no" if it lies below.

    "undecided" if it contains the threshold, or if there is no interval (NaN).
    """
    return "yes" if estimate.low > threshold else "no" if estimate.high < threshold else "undecided"


def decide_below(estimate: Estimate, threshold: float = 0.0) -> Supported:
    """ "yes" if the whole interval lies below the threshold, "no" if it lies above.

    "undecided" if it contains the threshold, or if there is no interval (NaN).
    """
    return "yes" if estimate.high < threshold else "no" if estimate.low > threshold else "undecided"


class CorrelationCheck(AnalysisCheck):
    """Base class of checks whether two curves are related beyond the trend that all seeds share.

    The number is from −2 to 2: the Spearman correlation of the two curves of a seed, minus that of
    the first curve of one seed with the second curve of another (stats/correlation.py).
    """

    unit: ClassVar[str] = "difference of two correlations, from −2 to 2"
    advice: ClassVar[str] = (
        "more seeds and more steps at which both are measured narrow the interval"
    )
    expected_sign: ClassVar[int] = 0
    """Sign of the claimed correlation: −1, 1, or 0 for any."""

    def load_curves(self, run: Record) -> tuple[Curve, Curve]:
        """Both curves of one seed."""
        raise NotImplementedError

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the curves are related with the claimed sign."""
        correlation = correlate([self.load_curves(run) for run in runs])
        supported: Supported = "undecided"
        if correlation.verdict == "related":
            # an expected sign of 0 accepts both signs
            supported = "yes" if correlation.excess.value * self.expected_sign >= 0 else "no"
        elif correlation.verdict == "unrelated":
            supported = "no"
        finding = self.create_finding(supported, correlation.excess, str(correlation))
        if len(runs) < MIN_SEEDS:
            return replace(finding, missing=describe_missing_seeds(len(runs)))
        return finding


class LossCorrelationCheck(CorrelationCheck):
    """Base class of checks whether the mean of an attention measure goes with validation loss."""

    measure_name: ClassVar[str]
    """File name of the measure in capture/measures/."""

    def load_curves(self, run: Record) -> tuple[Curve, Curve]:
        """The measure, averaged over layers and heads, and the validation loss."""
        return load_mean_curve(run, self.measure_name), load_loss_curve(run)

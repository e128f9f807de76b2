"""Documents × segmenters → a table: every score with an interval, and the lift over the best baseline.

    table = scores(truths, predictions, baselines=baseline_answers([one.elements for one in documents], training))
    print(table)

All scores are counted once per document; the intervals draw documents again and add up the counts (resample.py). A lift
is measured on the same drawn documents on both sides, so what makes a document hard for everyone cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.baselines import registry as baseline_registry
from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import Counts, Metric
from neural.tasks.cutting.metrics import registry as metric_registry
from neural.tasks.cutting.resample import RESAMPLES, Interval, interval, resampled

Answers = Sequence[npt.ArrayLike]
"""One array per document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """How much better than the best baseline; above 0 is better, whichever end of the score is the good one."""

    over: str
    """The baseline that does best by this score on all documents."""
    difference: Interval
    relative: Interval
    """As a share of the baseline's score: 0.25 of Pk is a quarter fewer errors. NaN over a score of 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Scores by segmenter and by name; the model's own row first."""

    rows: dict[str, dict[str, Interval]]
    lifts: dict[str, Lift]
    better: dict[str, str]
    """By score: "low" or "high"."""
    documents: int
    resamples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Segmenters down, the scores of the model across; the intervals of the model's row and of the lift below."""
        model, *rest = self.rows
        width = max(map(len, [*self.rows, *self.rows[model]])) + 2
        lines = ["".ljust(width) + "".join(name.rjust(14) for name in self.rows)]
        for score, direction in self.better.items():
            values = [row[score].value if score in row else np.nan for row in self.rows.values()]
            shown = ["–" if np.isnan(value) else f"{value:.3f}" for value in values]
            lines.append(score.ljust(width) + "".join(one.rjust(14) for one in shown) + f"   {direction} is better")
        lines += ["", f"{model}, and its lift over the best of {len(rest)} baselines:" if rest else f"{model}:"]
        for score, own in self.rows[model].items():
            lift = self.lifts.get(score)
            lines.append(f"{score.ljust(width)}{own}" + (f"   {lift.difference} over {lift.over}" if lift else ""))
        drawn = f"95 % intervals: {self.documents} documents drawn again {self.resamples:,} times (seed {self.seed})"
        return "\n".join([*lines, "", drawn])


def scores(
    truths: Answers, predictions: Answers, *, baselines: Mapping[str, Answers] | None = None,
    labels: tuple[Answers, Answers] | None = None, name: str = "model", resamples: int = RESAMPLES, seed: int = 0,
) -> Table:  # fmt: skip
    """Boundaries of every document against the true ones; `labels` are the true and the predicted ones, where known."""
    if len(truths) == 0:
        raise ValueError("there are no documents to score")
    rows: dict[str, dict[str, Interval]] = {}
    drawn: dict[str, dict[str, Counts]] = {}
    better: dict[str, str] = {}
    for segmenter, answers in {name: predictions, **(baselines or {})}.items():
        if len(answers) != len(truths):
            raise ValueError(f"{len(truths):,} documents, but {segmenter} has answers to {len(answers):,}")
        rows[segmenter], drawn[segmenter] = {}, {}
        for metric in _metrics():
            if metric.reads == "labels" and (labels is None or segmenter != name):
                continue
            counts = metric.counts(*labels) if metric.reads == "labels" and labels else metric.counts(truths, answers)
            whole = metric.scores(counts.sum(axis=0))
            drawn[segmenter] |= metric.scores(resampled(counts, resamples=resamples, seed=seed))
            better |= dict.fromkeys(whole, metric.better)
            for score, value in whole.items():
                rows[segmenter][score] = interval(float(value), drawn[segmenter][score], len(truths))
    lifts = {}
    for score in rows[name] if baselines else ():
        best = _best(score, better[score], {one: rows[one] for one in baselines or {}})
        if best is not None:
            lifts[score] = _lift(rows, drawn, score, better[score], name, best, len(truths))
    return Table(rows=rows, lifts=lifts, better=better, documents=len(truths), resamples=resamples, seed=seed)


def plain_scores(
    truths: Answers, predictions: Answers, *, labels: tuple[Answers, Answers] | None = None
) -> dict[str, float]:
    """Every score of these documents, without intervals: for a validation during training."""
    found: dict[str, float] = {}
    for metric in _metrics():
        if metric.reads == "boundaries" or labels:
            pair = labels if metric.reads == "labels" and labels else (truths, predictions)
            found |= {one: float(value) for one, value in metric.scores(metric.counts(*pair).sum(axis=0)).items()}
    return found


def baseline_answers(documents: Sequence[Sequence[str]], training: Answers) -> dict[str, list[Boundaries]]:
    """What every baseline says of every document; `training` are the true boundaries that `every_k` takes k from."""
    made = {one: baseline_registry.get(one).of(training) for one in baseline_registry.names()}
    return {one: [baseline.boundaries(elements) for elements in documents] for one, baseline in made.items()}


def _metrics() -> list[Metric]:
    return [metric_registry.get(one)() for one in metric_registry.names()]


def _best(score: str, better: str, rows: Mapping[str, Mapping[str, Interval]]) -> str | None:
    """The row that does best; None where no row has this score."""
    known = {one: row[score].value for one, row in rows.items() if score in row}
    if not known:
        return None
    return min(known, key=known.__getitem__) if better == "low" else max(known, key=known.__getitem__)


def _lift(
    rows: Mapping[str, Mapping[str, Interval]], drawn: Mapping[str, Mapping[str, Counts]], score: str, better: str,
    name: str, best: str, documents: int,
) -> Lift:  # fmt: skip
    sign = -1 if better == "low" else 1
    own, other = rows[name][score].value, rows[best][score].value
    difference = sign * (drawn[name][score] - drawn[best][score])
    base = drawn[best][score]
    relative = np.where(base > 0, difference / np.where(base > 0, base, 1), np.nan)
    return Lift(
        over=best,
        difference=interval(sign * (own - other), difference, documents),
        relative=interval(sign * (own - other) / other if other > 0 else float("nan"), relative, documents),
    )

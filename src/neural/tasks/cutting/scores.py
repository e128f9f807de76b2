"""Documents × segmenters → a table: every score with an interval, and the lift over the best baseline.

    table = scores(truths, predictions, baselines=baseline_answers([one.elements for one in documents], training))
    print(table)

All scores are counted once per place; intervals leave out documents, and sources that documents share, in turn
(jackknife.py). A lift is a difference on the same documents, so what makes a document hard for everyone cancels.
The best of several baselines looks better than it is, because it was chosen on these documents: the choice is made
again on documents drawn with replacement, and by as much as it gains there the upper end of a lift is higher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.baselines import registry as baseline_registry
from neural.tasks.cutting.clusters import Clusters
from neural.tasks.cutting.jackknife import Estimate, Grouping, Ids, Interval, Numbers, Sums, estimates
from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import Metric
from neural.tasks.cutting.metrics import registry as metric_registry

RESAMPLES = 2_000
"""How often documents are drawn to choose the best baseline again."""
MAX_DRAWN = 4_000_000
"""Numbers held in memory while drawing."""
Answers = Sequence[npt.ArrayLike]
"""One array per document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """How much better than the best baseline; above 0 is better, whichever end of the score is the good one."""

    over: str
    """The baseline that does best by this score on all documents."""
    difference: Interval
    """Its interval is of the lift over the baseline that is best in truth, whichever that is."""
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
    over: str
    """What the intervals are over: `20 documents and 8 shared sources`."""
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
        lines += ["", f"95 % intervals over {self.over}, each left out in turn"]
        if self.lifts:
            lines.append(f"the best baseline is chosen again in {self.resamples:,} resamples (seed {self.seed})")
        return "\n".join(lines)


def scores(
    truths: Answers, predictions: Answers, *, baselines: Mapping[str, Answers] | None = None,
    labels: tuple[Answers, Answers] | None = None, clusters: Clusters | None = None, name: str = "model",
    resamples: int = RESAMPLES, seed: int = 0,
) -> Table:  # fmt: skip
    """Boundaries of every document against the true ones; `labels` are the true and the predicted ones, where known.

    `clusters` says which sources the documents share; without it, intervals are over documents alone.
    """
    if len(truths) == 0:
        raise ValueError("there are no documents to score")
    clusters = clusters or Clusters(len(truths))
    rows: dict[str, dict[str, Estimate]] = {}
    better: dict[str, str] = {}
    for segmenter, answers in {name: predictions, **(baselines or {})}.items():
        if len(answers) != len(truths):
            raise ValueError(f"{len(truths):,} documents, but {segmenter} has answers to {len(answers):,}")
        rows[segmenter] = {}
        for metric in _metrics():
            if metric.reads == "labels" and (labels is None or segmenter != name):
                continue
            pair = labels if metric.reads == "labels" and labels else (truths, answers)
            measured = score_estimates(metric, *pair, clusters)
            better |= dict.fromkeys(measured, metric.better)
            rows[segmenter] |= measured
    lifts = {}
    for score in rows[name] if baselines else ():
        others = {other: rows[other][score] for other in baselines or {} if score in rows[other]}
        if others:
            lifts[score] = lift_over_best(rows[name][score], others, better[score], resamples, seed)
    intervals = {
        segmenter: {score: estimate.interval("share") for score, estimate in row.items()}
        for segmenter, row in rows.items()
    }
    return Table(
        rows=intervals, lifts=lifts, better=better, documents=len(truths), over=str(clusters), resamples=resamples,
        seed=seed,
    )  # fmt: skip


def score_estimates(
    metric: Metric, truths: Answers, predictions: Answers, clusters: Clusters
) -> dict[str, Estimate]:
    """The metric's scores by name, each with how it changes without a document or a source."""
    if clusters.sources is None:
        return estimates(Sums(metric.counts(truths, predictions)), metric.scores)
    places = metric.places(truths, predictions)
    rows = np.concatenate([place.rows for place in places])
    document = np.repeat(np.arange(len(places)), [len(place.rows) for place in places])
    first, last = (
        np.concatenate([ids[at] for ids, at in zip(clusters.sources, ends, strict=True)])
        for ends in ([place.first for place in places], [place.last for place in places])
    )

    def add(members: Ids, groups: Ids, count: int) -> Numbers:
        sums = [np.bincount(groups, column, minlength=count) for column in rows[members].T]
        return np.stack(sums, axis=1).astype(float)

    return estimates(Grouping(document, len(places), (first, last)).sums(add), metric.scores)


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


def lift_over_best(
    own: Estimate, baselines: Mapping[str, Estimate], better: str, resamples: int = RESAMPLES, seed: int = 0
) -> Lift:
    """How much better a score is than the best of others; `better` is the good end, "low" or "high"."""
    signed = {
        name: -estimate if better == "low" else estimate
        for name, estimate in {"": own, **baselines}.items()
    }
    model = signed.pop("")
    over = max(signed, key=lambda name: signed[name].value)
    difference = model - signed[over]
    gain = max(0.0, difference.value - _chosen_again(model, list(signed.values()), difference, resamples, seed))
    base = baselines[over]
    ratio = own.relative_to(base)
    relative = -ratio if better == "low" else ratio
    return Lift(
        over=over,
        difference=_raised(difference.interval(), gain),
        relative=_raised(relative.interval(), gain / base.value if base.value > 0 else 0.0),
    )


def _raised(interval: Interval, gain: float) -> Interval:
    """With an upper end that is so much higher."""
    return Interval(value=interval.value, low=interval.low, high=interval.high + gain)


def _chosen_again(
    model: Estimate, baselines: Sequence[Estimate], difference: Estimate, resamples: int, seed: int
) -> float:
    """The mean lift where documents, and sources, are drawn with replacement and the best baseline is chosen anew.

    To first order: a score changes by how often each document is drawn, times what it adds.
    """
    everyone = [model, *baselines]
    values = np.array([estimate.value for estimate in everyone])
    count, sources = len(model.documents), len(model.sources)
    changes = np.stack([estimate.documents for estimate in everyone], axis=1) * (count - 1) / count
    of_sources = np.stack([estimate.sources for estimate in everyone], axis=1)
    of_sources *= np.sqrt(difference.source_share)
    generator, lifts = np.random.default_rng(seed), []
    at_once = max(1, MAX_DRAWN // max(count, sources))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        drawn = values + (generator.multinomial(count, np.full(count, 1 / count), size) - 1) @ changes
        if sources:
            times = generator.multinomial(sources, np.full(sources, 1 / sources), size)
            drawn += (times - 1) @ of_sources
        lifts.append(drawn[:, 0] - drawn[:, 1:].max(axis=1))
    return float(np.concatenate(lifts).mean())

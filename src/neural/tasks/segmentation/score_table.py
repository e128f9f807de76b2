"""Score table of a model and the baselines, with confidence intervals and lifts.

    baselines = run_baselines([document.elements for document in documents], training_boundaries)
    print(score_segmenters(truths, predictions, baselines=baselines))

A segmenter is the model or a baseline (an untrained method); a score is a value such as Pk or F1.
`truths` and `predictions` have one boolean array per document: True at the elements (sentences or
lines) where a segment begins.

Intervals are computed by the jackknife (stats/jackknife.py), which leaves out one document at
a time, or one source: a text that several documents contain parts of. The influence of a document
on a score is the score minus the score without the document.

A lift is the improvement of the model over the best baseline on the same documents. The best of
several baselines looks better than it is, because it was selected on these documents. To correct
this, the selection is repeated on bootstrap resamples; its mean gain there is added to the upper
end of the lift's interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from neural.stats.estimate import Estimate
from neural.stats.jackknife import (
    FloatArray,
    GroupSums,
    IdArray,
    JackknifeScore,
    RowGrouping,
    jackknife,
)
from neural.tasks.segmentation.baselines import registry as baseline_registry
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metric import SegmentationMetric
from neural.tasks.segmentation.metrics import registry as metric_registry
from neural.tasks.segmentation.source_clusters import SourceClusters

DEFAULT_RESAMPLES = 2_000
"""Number of bootstrap resamples for the selection of the best baseline."""
MAX_DRAWN_VALUES = 4_000_000
"""Maximum number of random values in memory at once; resamples are drawn in chunks."""
DocumentArrays = Sequence[npt.ArrayLike]
"""One array per document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineLift:
    """Improvement over the best baseline.

    A value above 0 means that the model is better, whether low or high scores are better.
    """

    baseline: str
    """The best baseline by this score on all documents."""
    difference: Estimate
    """Difference of the scores; the interval accounts for the selection of the best baseline."""
    relative: Estimate
    """The difference as a fraction of the baseline's score; NaN if that is 0.

    For example, 0.25 for Pk (an error rate) means a quarter fewer errors.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "baseline": self.baseline,
            "difference": self.difference.to_dict(),
            "relative": self.relative.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """Scores of the model and the baselines."""

    rows: dict[str, dict[str, Estimate]]
    """Segmenter → name of the score → score. The model is the first row."""
    lifts: dict[str, BaselineLift]
    """Name of the score → lift of the model."""
    better: dict[str, str]
    """Name of the score → whether "low" or "high" values are better."""
    document_count: int
    interval_basis: str
    """What the jackknife leaves out, for the user: `20 documents and 8 shared sources`."""
    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Seed of the resampling."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for unknown ends of intervals."""
        return {
            **vars(self),
            "rows": {
                segmenter: {score: estimate.to_dict() for score, estimate in row.items()}
                for segmenter, row in self.rows.items()
            },
            "lifts": {score: lift.to_dict() for score, lift in self.lifts.items()},
        }

    def __str__(self) -> str:
        """Text table with a row per score and a column per segmenter.

        Below it are the model's scores and lifts with their intervals.
        """
        model, *baselines = self.rows
        width = max(map(len, [*self.rows, *self.rows[model]])) + 2
        lines = ["".ljust(width) + "".join(name.rjust(14) for name in self.rows)]
        for score, direction in self.better.items():
            values = [row[score].value if score in row else np.nan for row in self.rows.values()]
            cells = ["–" if np.isnan(value) else f"{value:.3f}" for value in values]
            lines.append(
                score.ljust(width)
                + "".join(cell.rjust(14) for cell in cells)
                + f"   {direction} is better"
            )
        lines += [
            "",
            f"{model}, and its lift over the best of {len(baselines)} baselines:"
            if baselines
            else f"{model}:",
        ]
        for score, interval in self.rows[model].items():
            lift = self.lifts.get(score)
            lines.append(
                f"{score.ljust(width)}{interval}"
                + (f"   {lift.difference} over {lift.baseline}" if lift else "")
            )
        lines += ["", f"95 % intervals by jackknife over {self.interval_basis}"]
        if self.lifts:
            lines.append(
                f"the best baseline is selected again in {self.resamples:,} resamples "
                f"(seed {self.seed})"
            )
        return "\n".join(lines)


def score_segmenters(
    truths: DocumentArrays,
    predictions: DocumentArrays,
    *,
    baselines: Mapping[str, DocumentArrays] | None = None,
    labels: tuple[DocumentArrays, DocumentArrays] | None = None,
    clusters: SourceClusters | None = None,
    name: str = "model",
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> ScoreTable:
    """Score the predicted boundaries of a model and of baselines against the true ones.

    `labels` are the true labels and those that the model predicts, if it predicts labels; baselines
    have none. `clusters` are the sources that documents share; without it, intervals are over
    documents alone. `name` is the name of the model in the table.
    """
    if len(truths) == 0:
        raise ValueError("there are no documents to score")
    clusters = clusters or SourceClusters(len(truths))
    estimates: dict[str, dict[str, JackknifeScore]] = {}
    better: dict[str, str] = {}
    for segmenter, predicted in {name: predictions, **(baselines or {})}.items():
        if len(predicted) != len(truths):
            raise ValueError(
                f"{len(truths):,} documents, but {segmenter} has predictions for {len(predicted):,}"
            )
        estimates[segmenter] = {}
        for metric in _create_metrics():
            if metric.input_kind == "labels" and (labels is None or segmenter != name):
                continue
            truth_and_prediction = (
                labels if metric.input_kind == "labels" and labels else (truths, predicted)
            )
            metric_estimates = estimate_scores(metric, *truth_and_prediction, clusters)
            better |= dict.fromkeys(metric_estimates, metric.better)
            estimates[segmenter] |= metric_estimates
    lifts = {}
    for score in estimates[name] if baselines else ():
        baseline_estimates = {
            baseline: estimates[baseline][score]
            for baseline in baselines or {}
            if score in estimates[baseline]
        }
        if baseline_estimates:
            lifts[score] = estimate_lift(
                estimates[name][score], baseline_estimates, better[score], resamples, seed
            )
    intervals = {
        segmenter: {score: estimate.estimate("share") for score, estimate in row.items()}
        for segmenter, row in estimates.items()
    }
    return ScoreTable(
        rows=intervals,
        lifts=lifts,
        better=better,
        document_count=len(truths),
        interval_basis=str(clusters),
        resamples=resamples,
        seed=seed,
    )


def estimate_scores(
    metric: SegmentationMetric,
    truths: DocumentArrays,
    predictions: DocumentArrays,
    clusters: SourceClusters,
) -> dict[str, JackknifeScore]:
    """Jackknife estimates of the metric's scores by name.

    If documents share sources, counts are needed by position: a position is one comparison of the
    metric, such as a window of Pk, and depends on the sources of its first and last element.
    """
    if clusters.source_ids is None:
        return jackknife(GroupSums(metric.count_documents(truths, predictions)), metric.scores)
    document_counts = metric.count_positions(truths, predictions)
    rows = np.concatenate([counts.rows for counts in document_counts])
    document_ids = np.repeat(
        np.arange(len(document_counts)), [len(counts.rows) for counts in document_counts]
    )
    # Sources of the first and the last element that each row depends on.
    first, last = (
        np.concatenate(
            [ids[elements] for ids, elements in zip(clusters.source_ids, ends, strict=True)]
        )
        for ends in (
            [counts.first for counts in document_counts],
            [counts.last for counts in document_counts],
        )
    )

    # Sums of the counts of the rows `members`, whose groups are `groups`, for `count` groups.
    def add(members: IdArray, groups: IdArray, count: int) -> FloatArray:
        sums = [np.bincount(groups, column, minlength=count) for column in rows[members].T]
        return np.stack(sums, axis=1).astype(float)

    return jackknife(
        RowGrouping(document_ids, len(document_counts), (first, last)).sum_groups(add),
        metric.scores,
    )


def compute_scores(
    truths: DocumentArrays,
    predictions: DocumentArrays,
    *,
    labels: tuple[DocumentArrays, DocumentArrays] | None = None,
) -> dict[str, float]:
    """Every score of these documents, without intervals."""
    scores: dict[str, float] = {}
    for metric in _create_metrics():
        if metric.input_kind == "boundaries" or labels:
            truth_and_prediction = (
                labels if metric.input_kind == "labels" and labels else (truths, predictions)
            )
            totals = metric.count_documents(*truth_and_prediction).sum(axis=0)
            scores |= {name: float(value) for name, value in metric.scores(totals).items()}
    return scores


def run_baselines(
    documents: Sequence[Sequence[str]], training: DocumentArrays
) -> dict[str, list[Boundaries]]:
    """Predictions of every baseline for `documents`, each a sequence of elements.

    `training` are the boundaries of training documents, from which some baselines take parameters.
    """
    baselines = {
        name: baseline_registry.get(name).from_training(training)
        for name in baseline_registry.names()
    }
    return {
        name: [baseline.predict(elements) for elements in documents]
        for name, baseline in baselines.items()
    }


def _create_metrics() -> list[SegmentationMetric]:
    return [metric_registry.get(name)() for name in metric_registry.names()]


def estimate_lift(
    own: JackknifeScore,
    baselines: Mapping[str, JackknifeScore],
    better: str,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> BaselineLift:
    """Lift of the model's score `own` over the best of `baselines`.

    `better` is "low" or "high": which values of the score are better.
    """
    # Negate scores of which low values are better, so that larger is better from here on.
    sign_estimate = JackknifeScore.__neg__ if better == "low" else lambda estimate: estimate
    model = sign_estimate(own)
    signed = {name: sign_estimate(estimate) for name, estimate in baselines.items()}
    best = max(signed, key=lambda name: signed[name].value)
    difference = model - signed[best]
    # By how much the selection on these documents makes the best baseline look better than it is:
    # with a new selection in each resample, the lift is smaller by this on average.
    selection_gain = max(
        0.0,
        difference.value
        - _resample_best_lift(model, list(signed.values()), difference, resamples, seed),
    )
    baseline = baselines[best]
    ratio = own.relative_to(baseline)
    relative = -ratio if better == "low" else ratio
    return BaselineLift(
        baseline=best,
        difference=_raise_upper_end(difference.estimate(), selection_gain),
        relative=_raise_upper_end(
            relative.estimate(), selection_gain / baseline.value if baseline.value > 0 else 0.0
        ),
    )


def _raise_upper_end(interval: Estimate, gain: float) -> Estimate:
    """The interval with `gain` added to its upper end."""
    return replace(interval, high=interval.high + gain)


def _resample_best_lift(
    model: JackknifeScore,
    baselines: Sequence[JackknifeScore],
    difference: JackknifeScore,
    resamples: int,
    seed: int,
) -> float:
    """Mean lift over bootstrap resamples in which the best baseline is selected again.

    Larger scores are better. `difference` is the lift over the best baseline on all documents.
    Documents and sources are resampled. Scores are not computed again: to first order, a document
    that is drawn k times changes a score by (k − 1) times its influence.
    """
    estimates = [model, *baselines]
    values = np.array([estimate.value for estimate in estimates])
    count, source_count = len(model.documents), len(model.sources)
    document_influence = (
        np.stack([estimate.documents for estimate in estimates], axis=1) * (count - 1) / count
    )
    source_influence = np.stack([estimate.sources for estimate in estimates], axis=1)
    # Only a part of the variance between sources adds to that between documents.
    source_influence *= np.sqrt(difference.source_share)
    lifts = []
    for document_draws, source_draws in _draw_resamples(count, source_count, resamples, seed):
        scores = values + document_draws @ document_influence
        if source_count:
            scores += source_draws @ source_influence
        lifts.append(scores[:, 0] - scores[:, 1:].max(axis=1))
    return float(np.concatenate(lifts).mean())


def _draw_resamples(
    count: int, source_count: int, resamples: int, seed: int
) -> Iterable[tuple[FloatArray, FloatArray]]:
    """How often each document and source is drawn, minus 1, in chunks of resamples.

    An item is two arrays, (resamples of the chunk, documents) and (…, sources).
    """
    chunk_size = max(1, MAX_DRAWN_VALUES // max(count, source_count))
    if chunk_size >= resamples:
        # The draws depend on these numbers alone: all scores of a table share them.
        return _draw_chunk_once(count, source_count, resamples, seed)
    return _draw_chunks(count, source_count, resamples, seed, chunk_size)


@lru_cache(maxsize=1)
def _draw_chunk_once(
    count: int, source_count: int, resamples: int, seed: int
) -> list[tuple[FloatArray, FloatArray]]:
    return list(_draw_chunks(count, source_count, resamples, seed, resamples))


def _draw_chunks(
    count: int, source_count: int, resamples: int, seed: int, chunk_size: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, chunk_size):
        size = min(chunk_size, resamples - start)
        draws: list[FloatArray] = [
            rng.multinomial(items, np.full(items, 1 / items), size).astype(np.float64) - 1
            if items
            else np.zeros((size, 0))
            for items in (count, source_count)
        ]
        yield draws[0], draws[1]

"""Best validation scores of runs that differ only by seed or fold: mean, interval and range.

A group is runs of one setting. Its runs are repetitions with other seeds, or the folds of a
cross-validation. Intervals over seeds are those of `estimate_mean`; intervals over folds know that
folds share data (stats/folds.py).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neural.data.splits import Fold
from neural.findings.run_loading import get_monitored_metric, get_seed
from neural.findings.run_summary import find_best_validation
from neural.runs.run import Run
from neural.stats.comparisons import PairedComparison, compare_pairs
from neural.stats.estimate import Estimate
from neural.stats.folds import average_seeds, compare_folds, estimate_fold_mean
from neural.stats.means import estimate_mean


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """The best validation scores of the runs of one group."""

    name: str
    """The metric, such as `valid/loss`."""
    larger_is_better: bool
    scores: Mapping[Hashable, Mapping[Hashable, float]]
    """By fold (None without folds), then by seed. NaN for runs that failed, unless all did; other
    runs without a validation are left out."""
    failed: int = 0
    """Number of runs that failed. Then the group ranks behind those without."""
    fold_count: int | None
    """Number of folds of the cross-validation; None if there is none."""

    @property
    def values(self) -> list[float]:
        """All scores of runs that did not fail; if all did, those before they failed."""
        scores = [score for by_seed in self.scores.values() for score in by_seed.values()]
        return [score for score in scores if math.isfinite(score)]

    @property
    def failed_share(self) -> float:
        """Share of runs that failed."""
        return min(1.0, self.failed / sum(map(len, self.scores.values())))

    def paired_scores(self) -> Mapping[Hashable, Mapping[Hashable, float]]:
        """Scores as comparisons need them: NaN for every run that failed."""
        if self.failed_share < 1:
            return self.scores
        return {fold: dict.fromkeys(by_seed, math.nan) for fold, by_seed in self.scores.items()}

    def estimate(self) -> Estimate:
        """The mean with its 95 % interval, over seeds or over folds; no interval if one failed."""
        if self.failed:
            mean = sum(self.values) / len(self.values)
            return Estimate(mean, n=len(self.values))
        if self.fold_count is None:
            return estimate_mean(self.values).to_score(self.name)
        means = average_seeds(self.scores)
        return estimate_fold_mean(list(means.values()), self.fold_count).to_score(self.name)

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "name": self.name,
            "larger_is_better": self.larger_is_better,
            "estimate": self.estimate().to_dict("seeds"),
            "low": min(self.values),
            "high": max(self.values),
            "failed_share": self.failed_share,
            "folds": self.fold_count,
        }


def get_fold(run: Run) -> Fold | None:
    """The fold that the run holds out; None without a cross-validation."""
    return Fold.parse(str(run.settings.get("fold") or ""))


def load_group_score(
    runs: Sequence[Run], metric: tuple[str, bool] | None = None
) -> GroupScore | None:
    """Scores of runs of one group at their best validations; None if none has a finite score.

    `metric` is another score than the monitored one, at the same validations: its name, and whether
    larger is better.
    """
    name, larger_is_better = metric or get_monitored_metric(str(runs[0].settings.get("task", "")))
    scores: dict[Hashable, dict[Hashable, float]] = {}
    failed = [run.status.state == "failed" for run in runs]
    folds = [get_fold(run) for run in runs]
    for number, (run, fold) in enumerate(zip(runs, folds, strict=True)):
        best = find_best_validation(run)
        score = None if best is None else best.scores.get(name)
        if failed[number] and not all(failed):
            score = math.nan
        if score is not None:
            seed = get_seed(run)
            # runs without a seed are told apart by their number
            key = ("run", number) if seed is None else seed
            scores.setdefault(fold and fold.number, {})[key] = score
    if not any(math.isfinite(score) for by_seed in scores.values() for score in by_seed.values()):
        return None
    return GroupScore(
        name=name,
        larger_is_better=larger_is_better,
        scores=scores,
        failed=sum(failed),
        fold_count=next((fold.count for fold in folds if fold), None),
    )


def rank_groups(scores: Mapping[str, GroupScore]) -> list[str]:
    """Names of the groups, the best mean first; those with failed runs last."""
    sign = -1 if next(iter(scores.values())).larger_is_better else 1
    return sorted(
        scores,
        key=lambda label: (scores[label].failed_share, sign * scores[label].estimate().value),
    )


def compare_with_best(scores: Mapping[str, GroupScore]) -> dict[str, PairedComparison]:
    """Every group but the best, compared with it by equal seeds and folds.

    p is corrected for all pairs of groups, because the best was chosen by the same scores.
    """
    best, *others = rank_groups(scores)
    baseline, larger_is_better = scores[best], scores[best].larger_is_better
    candidates = [scores[label] for label in others]
    counts = {score.fold_count for score in scores.values()}
    if baseline.fold_count is not None and len(counts) == 1:
        comparisons = compare_folds(
            [score.paired_scores() for score in candidates],
            baseline.paired_scores(),
            baseline.fold_count,
            larger_is_better=larger_is_better,
        )
    elif counts == {None}:
        comparisons = compare_pairs(
            [score.paired_scores()[None] for score in candidates],
            baseline.paired_scores()[None],
            larger_is_better=larger_is_better,
            is_selected=True,
        )
    else:  # different folds, or folds and none: nothing is paired
        comparisons = [
            PairedComparison(Estimate(math.nan), math.nan, "undecided") for _ in candidates
        ]
    return dict(zip(others, comparisons, strict=True))


def build_cross_validation(scores: Mapping[str, GroupScore]) -> dict[str, Any] | None:
    """JSON data of the table of a cross-validation: a row per group; None without folds.

    Only groups with the same number of folds and the same metric share a table, which is that of
    the first such group.
    """
    in_folds = {label: score for label, score in scores.items() if score.fold_count is not None}
    if not in_folds:
        return None
    first = next(iter(in_folds.values()))
    shared = {
        label: score
        for label, score in in_folds.items()
        if (score.fold_count, score.name) == (first.fold_count, first.name)
    }
    comparisons = compare_with_best(shared)
    rows = []
    for label in rank_groups(shared):
        score, comparison = shared[label], comparisons.get(label)
        means = average_seeds(score.scores)
        rows.append(
            {
                "label": label,
                "folds": [
                    mean if math.isfinite(mean := means.get(number + 1, math.nan)) else None
                    for number in range(first.fold_count or 0)
                ],
                "seeds": max(map(len, score.scores.values())),
                "estimate": score.estimate().to_dict("seeds"),
                "comparison": comparison
                and {
                    "verdict": comparison.verdict,
                    "difference": comparison.difference.to_dict("seeds"),
                    "p": comparison.p if math.isfinite(comparison.p) else None,
                },
            }
        )
    return {"metric": first.name, "folds": first.fold_count, "rows": rows}

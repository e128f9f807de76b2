"""Scores of predictions with 95 % confidence intervals: classification and regression.

A row is one prediction: an example, or a position of an example. Rows of one group (an example, or
all examples of a patient, say) are correlated, so intervals are by the jackknife: leave out one
group at a time (JackknifeScore). Two estimates of the same rows subtract to a paired difference.

All scores agree with those of scikit-learn: accuracy, balanced accuracy, macro F1, log loss, areas
under the ROC and the precision-recall curve (mean over classes, one against the rest), MAE, RMSE
and R². The areas are no sums over rows; their influence per row is that of DeLong (1988) for ROC,
and the derivative by the weight of the row for precision and recall.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from neural.stats.correlation import rank_values
from neural.stats.estimate import Estimate
from neural.stats.jackknife import GroupSums, JackknifeScore, jackknife
from neural.stats.means import compute_wilson_interval
from neural.tasks.segmentation.probability import element_log_losses

SCORE_LABELS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "roc_auc": "ROC AUC",
    "pr_auc": "PR AUC",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
}
"""All scores and their names in tables."""
LOWER_IS_BETTER = frozenset({"log_loss", "mae", "rmse"})
MAX_AREA_NUMBERS = 50_000_000
"""With more probabilities, the areas are left out: they sort the rows once per class."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def estimate_class_scores(
    probabilities: Floats, truth: Ints, groups: Ints
) -> dict[str, JackknifeScore]:
    """Scores of class probabilities, (rows, C).

    `truth` is the class of each row, `groups` its group, numbered from 0 without gaps.
    """
    class_count = probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)
    hits = (predicted == truth).astype(float)
    ones = np.ones(len(truth))
    estimates = {
        "accuracy": _estimate_mean(hits, groups),
        "balanced_accuracy": _estimate_macro_ratio(hits, ones, truth, groups, class_count),
        # F1 of a class is 2 · hits / (its rows + rows predicted as it): the two halves count both.
        "macro_f1": _estimate_macro_ratio(
            np.concatenate([2 * hits, 0 * hits]),
            np.concatenate([ones, ones]),
            np.concatenate([truth, predicted]),
            np.concatenate([groups, groups]),
            class_count,
        ),
        "log_loss": _estimate_mean(element_log_losses(probabilities, truth), groups),
    }
    if probabilities.size > MAX_AREA_NUMBERS:
        return estimates
    # Of two classes, the area of the second is reported, as usual.
    scored_classes = [
        label
        for label in (range(class_count) if class_count > 2 else range(1, class_count))
        if 0 < (truth == label).sum() < len(truth)
    ]
    if scored_classes:
        for name, compute in (("roc_auc", _compute_roc_area), ("pr_auc", _compute_pr_area)):
            areas = [compute(probabilities[:, label], truth == label) for label in scored_classes]
            influence = np.mean([row_influence for _, row_influence in areas], axis=0)
            estimates[name] = JackknifeScore(
                value=float(np.mean([area for area, _ in areas])),
                documents=_sum_by_group(influence, groups),
            )
    return estimates


def estimate_value_scores(
    predictions: Floats, truth: Floats, groups: Ints
) -> dict[str, JackknifeScore]:
    """Scores of predicted numbers, (rows, units): means over the units.

    There is no R² if the truth of a unit is constant.
    """
    error = predictions - truth
    centred = truth - truth.mean(axis=0)  # sums of squares of large numbers would lose digits
    columns = (np.ones_like(error), np.abs(error), error**2, centred, centred**2)
    sums = np.zeros((int(groups.max()) + 1, len(columns), truth.shape[1]))
    for index, column in enumerate(columns):
        np.add.at(sums[:, index], groups, column)

    def compute_scores(totals: Floats) -> dict[str, Floats]:
        count, absolute, squared, y, y_squared = np.moveaxis(totals, -2, 0)
        variation = y_squared - y**2 / count  # sum of squares around the mean
        return {
            "mae": (absolute / count).mean(axis=-1),
            "rmse": np.sqrt(squared / count).mean(axis=-1),
            "r2": (1 - squared / np.where(variation > 0, variation, np.nan)).mean(axis=-1),
        }

    estimates = jackknife(GroupSums(sums), compute_scores)
    return {name: item for name, item in estimates.items() if math.isfinite(item.value)}


def create_interval(name: str, estimate: JackknifeScore, smallest_count: int) -> Estimate:
    """The score with its 95 % interval, on the scale that suits the score.

    A score of exactly 0 or 1 has no variance to estimate. Its interval is Wilson's for
    `smallest_count` rows: all of them for the accuracy, those of the rarest class for the others.
    """
    value = estimate.value
    if name in ("log_loss", "mae", "rmse"):
        return estimate.estimate("positive")
    if name == "r2":  # the unexplained share, 1 − R², is positive
        unexplained = (estimate.combine(estimate, 1 - value, -1, 0)).estimate("positive")
        return Estimate(value, 1 - unexplained.high, 1 - unexplained.low, unexplained.n)
    if value in (0.0, 1.0) and smallest_count:
        low, high = compute_wilson_interval(
            *np.array([[value], [smallest_count], [1.0], [math.inf]])
        )
        return Estimate(value, float(low[0]), float(high[0]), len(estimate.documents))
    return estimate.estimate("share")


def estimate_lift(name: str, model: JackknifeScore, baseline: JackknifeScore) -> Estimate:
    """Improvement of the model over a baseline on the same rows; above 0 is better."""
    difference = baseline - model if name in LOWER_IS_BETTER else model - baseline
    return difference.estimate()


def count_confusions(truth: Ints, predicted: Ints, class_count: int) -> Ints:
    """Confusion matrix, (C, C): rows are the true classes, columns the predicted ones."""
    cells = np.bincount(truth * class_count + predicted, minlength=class_count**2)
    return cells.reshape(class_count, class_count)


def _estimate_mean(values: Floats, groups: Ints) -> JackknifeScore:
    sums = np.stack(
        [_sum_by_group(values, groups), _sum_by_group(np.ones(len(values)), groups)], axis=1
    )
    return jackknife(GroupSums(sums), lambda totals: {"mean": totals[..., 0] / totals[..., 1]})[
        "mean"
    ]


def _sum_by_group(values: Floats, groups: Ints) -> Floats:
    return np.bincount(groups, values).astype(np.float64)


def _estimate_macro_ratio(
    numerator: Floats, denominator: Floats, classes: Ints, groups: Ints, class_count: int
) -> JackknifeScore:
    """Mean over the classes of sum(numerator) / sum(denominator), without each group.

    Only the classes of a group change without it, so the cost is O(rows), not O(groups · C).
    """
    cells, cell_of_row = np.unique(groups * class_count + classes, return_inverse=True)
    cell_numerator = np.bincount(cell_of_row, numerator)
    cell_denominator = np.bincount(cell_of_row, denominator)
    cell_class = cells % class_count
    class_numerator = np.bincount(classes, numerator, minlength=class_count)
    class_denominator = np.bincount(classes, denominator, minlength=class_count)
    is_present = class_denominator > 0
    ratios = class_numerator / np.where(is_present, class_denominator, 1)
    total, present_count = float(ratios[is_present].sum()), int(is_present.sum())

    remaining = class_denominator[cell_class] - cell_denominator
    is_left = remaining > 0  # a class whose rows are all in one group is gone without it
    ratio_without = np.where(
        is_left,
        (class_numerator[cell_class] - cell_numerator) / np.where(is_left, remaining, 1),
        0.0,
    )
    cell_group = cells // class_count
    change = np.bincount(cell_group, ratios[cell_class] - ratio_without)
    gone = np.bincount(cell_group, ~is_left)
    value = total / present_count
    classes_left = np.maximum(present_count - gone, 1)
    return JackknifeScore(value=value, documents=value - (total - change) / classes_left)


def _compute_roc_area(scores: Floats, is_positive: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
    """Area under the ROC curve, and the influence of each row on it.

    The placement of a positive is the share of negatives with a smaller score, of a negative the
    share of positives with a larger one; the area is the mean of either.
    """
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    ranks = rank_values(scores)
    placement = np.empty(len(scores))
    own_ranks = rank_values(scores[is_positive])
    placement[is_positive] = (ranks[is_positive] - own_ranks) / negatives
    own_ranks = rank_values(scores[~is_positive])
    placement[~is_positive] = 1 - (ranks[~is_positive] - own_ranks) / positives
    area = float(placement[is_positive].mean())
    count = np.where(is_positive, positives, negatives)
    return area, (placement - area) / np.maximum(count - 1, 1)


def _compute_pr_area(scores: Floats, is_positive: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
    """Average precision, the area under the precision-recall curve, and each row's influence."""
    order = np.argsort(-scores, kind="stable")
    ordered, positive = scores[order], is_positive[order].astype(float)
    # Rows with equal scores enter together: each counts up to the last of its ties.
    last_tie = np.searchsorted(-ordered, -ordered, side="right") - 1
    entered = (last_tie + 1).astype(float)
    precision = np.cumsum(positive)[last_tie] / entered
    positives = positive.sum()
    area = float((positive * precision).sum() / positives)
    # A row is in the precision of all positives with an equal or smaller score.
    first_tie = np.searchsorted(-ordered, -ordered, side="left")
    sum_from = np.cumsum((positive / entered)[::-1])[::-1][first_tie]
    precision_sum_from = np.cumsum((positive * precision / entered)[::-1])[::-1][first_tie]
    derivative = positive * (precision - area) + positive * sum_from - precision_sum_from
    influence = np.empty(len(scores))
    influence[order] = derivative / positives
    return area, influence

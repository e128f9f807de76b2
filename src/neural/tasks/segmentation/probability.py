"""Scores, probabilities, binning, log loss and Brier score.

Scores are the outputs of a model before they become probabilities. They have two forms: *margins*,
(n,), are the log-odds of "yes" in a binary question (does a segment begin here?); *logits*, (n, C),
are those of C classes. n is the number of elements (sentences or lines) of all documents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def equal_width_edges(bins: int) -> np.ndarray:
    """Inner edges of equal-width bins from 0 to 1, (bins − 1,)."""
    return np.arange(1, bins) / bins


def equal_mass_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Inner edges of at most `bins` bins with equally many values, as far as ties allow.

    Equal values are in the same bin; no bin is empty. Edges lie halfway between two values, so that
    a value with a rounding error stays in its bin.
    """
    ordered = np.sort(values)
    bin_starts = ordered[np.arange(1, bins) * len(ordered) // bins]
    start_indices = np.unique(np.searchsorted(ordered, bin_starts))
    start_indices = start_indices[start_indices > 0]
    return (ordered[start_indices - 1] + ordered[start_indices]) / 2


def sum_by_bin(
    edges: np.ndarray,
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    document_count: int | None = None,
) -> np.ndarray:
    """Count, sum of probabilities and sum of hits by document and bin, (documents, 3, bins).

    `edges` are the inner edges of the bins. The other arrays have one entry per element: its
    predicted probability, 1 if the predicted event occurred (a hit) or else 0, and the index of its
    document. `document_count` is the number of documents, by default the largest index + 1.
    """
    bins = len(edges) + 1
    count = int(documents.max()) + 1 if document_count is None else document_count
    cells = documents * bins + np.searchsorted(edges, p, side="right")
    sums = [
        np.bincount(cells, weights=weights, minlength=count * bins)
        for weights in (np.ones_like(p), p, hits)
    ]
    return np.stack(sums).reshape(3, count, bins).transpose(1, 0, 2)


MIN_PROBABILITY = float(np.finfo(np.float64).eps)
"""Probabilities are clipped to this minimum, so the largest log loss is 36 nats, not infinity."""
MAX_ABS_SCORE = 1e4
"""Margins are clipped to ± this value, logits to this distance from the largest of their row."""


def probabilities_to_margins(probabilities: ArrayLike) -> np.ndarray:
    """Log-odds of probabilities. They are finite, because 0 and 1 are clipped."""
    p = np.asarray(probabilities, np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities must lie between 0 and 1; some do not, or are NaN")
    p = p.clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.log(p) - np.log1p(-p)


def check_scores(scores: ArrayLike) -> np.ndarray:
    """Margins (n,) or logits (n, C ≥ 2) as finite float64; ValueError for NaN or other shapes.

    Logits are shifted so that the largest of each row is 0, which does not change their softmax.
    """
    s = np.asarray(scores, np.float64)
    if s.ndim not in (1, 2) or (s.ndim == 2 and s.shape[1] < 2):
        raise ValueError(
            f"scores must be margins, (n,), or logits, (n, classes); these have the shape {s.shape}"
        )
    if np.isnan(s).any():
        raise ValueError(f"{int(np.isnan(s).sum()):,} of {s.size:,} scores are NaN")
    if s.ndim == 2:
        s = s.clip(-1e300, 1e300)  # infinity minus infinity would be NaN
        s = s - s.max(axis=1, keepdims=True, initial=-np.inf) if len(s) else s
    return s.clip(-MAX_ABS_SCORE, MAX_ABS_SCORE)


def check_targets(truth: ArrayLike, scores: np.ndarray) -> np.ndarray:
    """Targets as int64, (n,): 0 and 1 for margins, class indices for logits. Else ValueError."""
    t = np.asarray(truth)
    if t.shape != scores.shape[:1]:
        raise ValueError(f"{len(scores):,} scores, but the truth has the shape {t.shape}")
    classes = scores.shape[1] if scores.ndim == 2 else 2
    with np.errstate(invalid="ignore"):  # NaN fails the comparison below
        targets = t.astype(np.int64) if t.dtype.kind in "biuf" else np.full(t.shape, -1)
    if not ((targets == t) & (targets >= 0) & (targets < classes)).all():
        raise ValueError(f"the truth must be integers from 0 to {classes - 1}")
    return targets


def scores_to_probabilities(scores: np.ndarray) -> np.ndarray:
    """Uncalibrated probabilities: sigmoid of margins, softmax of logits."""
    return sigmoid(scores) if scores.ndim == 1 else softmax(scores)


def sigmoid(margins: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−margin)), from 0 to 1."""
    with np.errstate(over="ignore"):  # exp of a large number is infinite: the result is 0
        return 1 / (1 + np.exp(-margins))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Class probabilities of each row of logits, (n, C)."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def element_log_losses(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Log loss of each element in nats, (n,): −ln P(target), from 0 to 36."""
    if probabilities.ndim == 1:
        p_target = np.where(truth == 1, probabilities, 1 - probabilities)
    else:
        p_target = probabilities[np.arange(len(truth)), truth]
    return -np.log(p_target.clip(MIN_PROBABILITY, 1))


def element_brier_scores(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Brier score of each element, (n,): squared distance between probabilities and target.

    0 is best; the worst is 1 for a binary question, 2 for classes.
    """
    if probabilities.ndim == 1:
        return (probabilities - truth) ** 2
    p_target = probabilities[np.arange(len(truth)), truth]
    return (probabilities**2).sum(axis=1) - p_target**2 + (1 - p_target) ** 2


def log_loss(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """Mean log loss, in nats."""
    return float(element_log_losses(probabilities, truth).mean())


def compute_confidence(
    probabilities: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and hits (0 or 1), (n,) each: calibration means that both agree on average.

    For a binary question they are P(yes) and the target. For classes they are the probability of
    the most likely class, and whether that class is the target.
    """
    if probabilities.ndim == 1:
        return probabilities, truth.astype(np.float64)
    predicted = probabilities.argmax(axis=1)
    confidence = probabilities[np.arange(len(predicted)), predicted]
    return confidence, (predicted == truth).astype(np.float64)

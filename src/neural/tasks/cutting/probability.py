"""Scores, probabilities, and how wrong they were.

Scores come in two forms. Of a yes/no question (does a part begin here?), the *margin*: (n,), the logarithm of the odds,
0 where both are equally likely. Of a choice between classes, *logits*: (n, C), of which only differences count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

SMALLEST = float(np.finfo(np.float64).eps)
"""No probability counts as less than this: one that was 0 and came true costs 36 nats, not infinitely many."""
FARTHEST = 1e4
"""Scores further than this from 0, or from the largest of their row, count as this far."""


def margins(probabilities: ArrayLike) -> np.ndarray:
    """The logarithms of the odds; 0 and 1 are taken as what a float can just tell from them."""
    p = np.asarray(probabilities, np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities lie between 0 and 1; these do not, or are not numbers")
    p = p.clip(SMALLEST, 1 - SMALLEST)
    return np.log(p) - np.log1p(-p)


def as_scores(scores: ArrayLike) -> np.ndarray:
    """Margins (n,) or logits (n, C ≥ 2) as finite 64-bit floats; the logits of a row end at 0."""
    s = np.asarray(scores, np.float64)
    if s.ndim not in (1, 2) or (s.ndim == 2 and s.shape[1] < 2):
        raise ValueError(f"scores must be margins, (n,), or logits, (n, classes); these have the shape {s.shape}")
    if np.isnan(s).any():
        raise ValueError(f"{int(np.isnan(s).sum()):,} of {s.size:,} scores are not numbers")
    if s.ndim == 2:
        s = s.clip(-1e300, 1e300)   # infinity minus infinity is not a number
        s = s - s.max(axis=1, keepdims=True, initial=-np.inf) if len(s) else s
    return s.clip(-FARTHEST, FARTHEST)


def as_truth(truth: ArrayLike, scores: np.ndarray) -> np.ndarray:
    """What was true, as whole numbers: 0 and 1 beside margins, classes from 0 beside logits."""
    t = np.asarray(truth)
    if t.shape != scores.shape[:1]:
        raise ValueError(f"{len(scores):,} scores, but the truth has the shape {t.shape}")
    classes = scores.shape[1] if scores.ndim == 2 else 2
    with np.errstate(invalid="ignore"):   # what is not a number is not equal to its whole either
        whole = t.astype(np.int64) if t.dtype.kind in "biuf" else np.full(t.shape, -1)
    if not ((whole == t) & (whole >= 0) & (whole < classes)).all():
        raise ValueError(f"the truth must be whole numbers from 0 to {classes - 1}")
    return whole


def plain_probabilities(scores: np.ndarray) -> np.ndarray:
    """What the scores say by themselves: P(yes) of margins, a row that sums to 1 of logits."""
    return expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)


def losses(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of each element, −ln of the probability of what came true, in nats: 0 was sure and right, 36 sure and wrong."""
    if probabilities.ndim == 1:
        right = np.where(truth == 1, probabilities, 1 - probabilities)
    else:
        right = probabilities[np.arange(len(truth)), truth]
    return -np.log(right.clip(SMALLEST, 1))


def squares(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of each element, the squared distance to the truth (Brier, 1950): 0 is best, the worst is 1, of classes 2."""
    if probabilities.ndim == 1:
        return (probabilities - truth) ** 2
    right = probabilities[np.arange(len(truth)), truth]
    return (probabilities**2).sum(axis=1) - right**2 + (1 - right) ** 2


def log_loss(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """The mean of `losses`, in nats."""
    return float(losses(probabilities, truth).mean())


def confidence(probabilities: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What calibration compares: how sure, and whether it came true.

    Of a yes/no question, P(yes) and the answer; of classes, the probability of the most likely and whether it was it.
    """
    if probabilities.ndim == 1:
        return probabilities, truth.astype(np.float64)
    likely = probabilities.argmax(axis=1)
    return probabilities[np.arange(len(likely)), likely], (likely == truth).astype(np.float64)

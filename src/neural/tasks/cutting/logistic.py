"""Logistic regression on scores, by Newton's method: what temperature, Platt, beta and vector calibration share.

Both begin at weights of 0: there the curvature is largest, however large the scores are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from neural.tasks.cutting.newton import lowest


def logistic(columns: np.ndarray, shares: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Weights of the columns (k, n) whose sum is the margin that fits the shares (n,) best, within bounds."""
    count = len(shares)

    def surface(weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        margin = weights @ columns
        yes = expit(margin)
        height = float((np.logaddexp(0, margin) - shares * margin).mean())
        curved = columns * (yes * (1 - yes))
        return height, columns @ (yes - shares) / count, curved @ columns.T / count

    return lowest(surface, np.zeros(len(columns)), lower, upper)


def multinomial(
    logits: np.ndarray, shares: np.ndarray, numbers: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Scale and shift of every class's logits (n, C), scales first, that fit the shares (n, C) best, within bounds.

    They are `numbers` (2C, k) times what is found (k,): all of them by the identity, one for all by a column of ones.
    """
    count, classes = logits.shape
    s, t = np.ascontiguousarray(logits.T), np.ascontiguousarray(shares.T)   # sums over a few rows of many are quick
    each = np.arange(classes)

    def surface(weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        scale, shift = np.split(numbers @ weights, 2)
        changed = s * scale[:, None] + shift[:, None]
        largest = changed.max(axis=0)
        p = np.exp(changed - largest)
        total = p.sum(axis=0)
        p /= total
        height = (np.log(total) + largest).mean() - (t * changed).sum() / count
        excess = p - t
        slope = np.concatenate([(excess * s).sum(axis=1), excess.sum(axis=1)])
        by_number = np.concatenate([p * s, p])   # p times the derivative of its logit by each number
        curvature = -(by_number @ by_number.T)
        curvature[each, each] += (by_number[:classes] * s).sum(axis=1)
        curvature[each, each + classes] += by_number[:classes].sum(axis=1)
        curvature[each + classes, each] += by_number[:classes].sum(axis=1)
        curvature[each + classes, each + classes] += p.sum(axis=1)
        return float(height), numbers.T @ slope / count, numbers.T @ curvature @ numbers / count

    return lowest(surface, np.zeros(numbers.shape[1]), lower, upper)

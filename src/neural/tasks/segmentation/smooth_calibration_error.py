"""Smooth calibration error (Błasiok and Nakkiran, 2023), beside that of a perfect model.

The residual of an element is 1 or 0 (did the predicted event occur?) minus its probability. The
residuals, as a function of the probability, are smoothed by a Gaussian kernel that is reflected at
0 and 1; the error at a bandwidth is the mean absolute value of the result. The smooth error is the
one that equals its bandwidth. It needs no bins, so it does not depend on a choice of bins.

By chance, the error of a perfect model, whose probabilities are exactly right, is above 0, too.
`estimate_smooth_error` simulates it: an error inside that range cannot be told from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural.stats.estimate import Estimate, summarize_simulations
from neural.tasks.segmentation.calibration_error import DEFAULT_BINS, DEGREES_PER_CLUSTER
from neural.tasks.segmentation.probability import equal_mass_edges

GRID_CELLS = 512
"""Probabilities are rounded to the middle of one of these cells."""
BANDWIDTHS = np.geomspace(1e-3, 1.0, 60)
"""Bandwidths at which the error is computed; between them it is interpolated."""
DEFAULT_SIMULATIONS = 400
"""Number of simulations of a perfect model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothCalibrationError:
    """Smooth calibration error, and the range of that of a perfect model."""

    value: float
    """From 0 (perfect) to 1 (always certain and wrong)."""
    perfect_model: Estimate
    """What chance alone would cause: the mean, and the range of the central 90 % of simulations."""

    @property
    def is_above_chance(self) -> bool:
        """Whether fewer than 5 % of the simulated perfect models have an error as large."""
        return self.value > self.perfect_model.high

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"value": self.value, "perfect_model": self.perfect_model.to_dict()}

    def __str__(self) -> str:
        null = self.perfect_model
        return (
            f"{self.value:.3f}; a perfect model has {null.format_value()}, "
            f"{null.format_interval()} in 90 % of cases"
        )


def estimate_smooth_error(
    probabilities: Sequence[np.ndarray],
    truths: Sequence[np.ndarray],
    *,
    simulations: int = DEFAULT_SIMULATIONS,
    seed: int = 0,
) -> SmoothCalibrationError:
    """Smooth calibration error of boundary probabilities; one array per document.

    The first element of a document is left out: there is no decision. ValueError if there are no
    other elements.

    The perfect model is simulated by a wild cluster bootstrap: elements of one document are
    correlated, so the residuals of a document are multiplied by one random factor. The variance is
    at least that of independent elements.
    """
    counts = [max(0, len(document) - 1) for document in probabilities]
    if not sum(counts):
        raise ValueError("every document has a single element: there is no gap to predict")
    p = np.concatenate([document[1:] for document in probabilities])
    hits = np.concatenate([np.asarray(document)[1:] for document in truths]).astype(float)
    documents = np.repeat(np.arange(len(counts)), counts)
    cells = np.minimum((p * GRID_CELLS).astype(np.int64), GRID_CELLS - 1)
    residuals = np.bincount(cells, hits - p, minlength=GRID_CELLS) / len(p)
    rng = np.random.default_rng(seed)
    simulated = _simulate_residuals(p, hits, cells, documents, simulations, rng)
    errors = smooth_errors(simulated)
    return SmoothCalibrationError(
        value=float(smooth_errors(residuals[None])[0]),
        perfect_model=summarize_simulations(errors),
    )


def smooth_errors(residuals: np.ndarray) -> np.ndarray:
    """Smooth error of each row of residuals, (rows, GRID_CELLS) → (rows,).

    A cell has the sum of the residuals of its elements, divided by the number of all elements.
    """
    # Smoothing with reflection at both ends is smoothing of a periodic series: the residuals and
    # their mirror image. There the Gaussian kernel multiplies the coefficient of frequency k by
    # exp(−(π·k·bandwidth)² / 2).
    coefficients = np.fft.rfft(np.concatenate([residuals, residuals[:, ::-1]], axis=1))
    frequencies = np.pi * np.arange(GRID_CELLS + 1)
    errors = np.empty((len(BANDWIDTHS), len(residuals)))
    for index, bandwidth in enumerate(BANDWIDTHS):
        decay = np.exp(-((frequencies * bandwidth) ** 2) / 2)
        errors[index] = np.abs(np.fft.irfft(coefficients * decay)).sum(axis=-1) / 2  # both images
    return np.array([_find_fixed_point(column) for column in errors.T])


def _find_fixed_point(errors: np.ndarray) -> float:
    """The error that equals its bandwidth; `errors` are those at BANDWIDTHS and do not increase."""
    excess = errors - BANDWIDTHS
    if excess[0] <= 0:  # smaller than the smallest bandwidth
        return float(errors[0])
    after = int(np.argmax(excess <= 0)) if (excess <= 0).any() else len(excess) - 1
    before = after - 1
    share = excess[before] / (excess[before] - excess[after])
    return float(BANDWIDTHS[before] + share * (BANDWIDTHS[after] - BANDWIDTHS[before]))


def _simulate_residuals(
    p: np.ndarray,
    hits: np.ndarray,
    cells: np.ndarray,
    documents: np.ndarray,
    simulations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Residuals of perfect models by cell, (simulations, GRID_CELLS)."""
    independent_variance = np.bincount(cells, p * (1 - p), minlength=GRID_CELLS)
    document_count = int(documents.max()) + 1
    if document_count == 1:  # the correlation in a single document cannot be estimated
        noise = rng.standard_normal((simulations, GRID_CELLS))
        return noise * np.sqrt(independent_variance) / len(p)
    # The mean residual of similar probabilities is the miscalibration of this model, which a
    # perfect one does not have.
    bins = np.searchsorted(equal_mass_edges(p, DEFAULT_BINS), p, side="right")
    bin_means = np.bincount(bins, hits - p) / np.maximum(np.bincount(bins), 1)
    centred = hits - p - bin_means[bins]
    by_document = np.bincount(
        documents * GRID_CELLS + cells, centred, minlength=document_count * GRID_CELLS
    ).reshape(document_count, GRID_CELLS)
    by_document *= np.sqrt(document_count / (document_count - 1))
    deviations = rng.standard_normal((simulations, document_count)) @ by_document
    missing_variance = np.maximum(independent_variance - (by_document**2).sum(axis=0), 0)
    deviations += rng.standard_normal((simulations, GRID_CELLS)) * np.sqrt(missing_variance)
    # Student's t distribution instead of the normal one, because the variance is an estimate.
    degrees = DEGREES_PER_CLUSTER * document_count
    deviations *= np.sqrt(degrees / rng.chisquare(degrees, size=(simulations, 1)))
    return deviations / len(p)

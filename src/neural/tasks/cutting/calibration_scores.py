"""How good probabilities were: log loss, Brier score and three expected errors, with intervals over documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neural.tasks.cutting.expected_error import Distances, resampled_together
from neural.tasks.cutting.probability import confidence, losses, squares
from neural.tasks.cutting.resample import RESAMPLES, Interval, interval, resampled


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationScores:
    """Of one way to get probabilities. Lower is better in all."""

    log_loss: Interval
    """Nats per element."""
    brier: Interval
    """0 to 1 of a yes/no question, 0 to 2 of classes."""
    ece: Interval
    """Equal widths; of classes, that of the most likely one, as the next two."""
    ece_equal_mass: Interval
    ece_debiased: Interval

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an end that is not known is None, since JSON has no NaN."""
        return {name: {key: value if value == value else None for key, value in one.items()}
                for name, one in asdict(self).items()}  # fmt: skip

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CalibrationScores:
        """What `to_dict` gave, also after a file."""
        known = {name: {key: math.nan if value is None else value for key, value in one.items()}
                 for name, one in saved.items()}  # fmt: skip
        return cls(**{name: Interval(**one) for name, one in known.items()})


def calibration_scores(
    ways: Mapping[str, np.ndarray], truth: np.ndarray, documents: np.ndarray, *, resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, CalibrationScores]:  # fmt: skip
    """Of several ways to get P(yes), (n,), or classes, (n, C), by name; of elements of documents numbered from 0.

    The intervals of all come from the same drawn sets of documents.
    """
    tables: dict[str, tuple[np.ndarray, ...]] = {
        name: (*Distances.of(*confidence(p, truth), documents),
               _totals(losses(p, truth), documents), _totals(squares(p, truth), documents))
        for name, p in ways.items()
    }  # fmt: skip
    drawn = iter(resampled_together([one for some in tables.values() for one in some], resamples=resamples, seed=seed))
    found = {}
    for name, (wide, even, lost, squared) in tables.items():
        errors = Distances(wide, even).errors(Distances(next(drawn), next(drawn)))
        found[name] = CalibrationScores(
            log_loss=_mean(lost, next(drawn)), brier=_mean(squared, next(drawn)),
            ece=errors.plain, ece_equal_mass=errors.equal_mass, ece_debiased=errors.debiased,
        )  # fmt: skip
    return found


def mean_over(
    values: np.ndarray, documents: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The mean over elements, with an interval over documents."""
    sums = _totals(values, documents)
    return _mean(sums, resampled(sums, resamples=resamples, seed=seed))


def _totals(values: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Of every document, the sum and how many there are."""
    return np.stack([np.bincount(documents, weights=values), np.bincount(documents)], axis=1)


def _mean(sums: np.ndarray, drawn: np.ndarray) -> Interval:
    total, count = sums.sum(axis=0)
    return interval(float(total / count), drawn[:, 0] / drawn[:, 1], len(sums))

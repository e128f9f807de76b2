"""How good probabilities were: log loss, Brier score and three expected errors, with intervals over documents and the
sources they share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from neural.tasks.cutting.expected_error import Pairs, expected_errors
from neural.tasks.cutting.jackknife import Grouping, Ids, Interval, estimates
from neural.tasks.cutting.probability import confidence, losses, squares


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
    ways: Mapping[str, np.ndarray], truth: np.ndarray, documents: np.ndarray, *, sources: Pairs = None
) -> dict[str, CalibrationScores]:
    """Of several ways to get P(yes), (n,), or classes, (n, C), by name; of elements of documents numbered from 0."""
    scores = {}
    for name, p in ways.items():
        errors = expected_errors(*confidence(p, truth), documents, sources=sources)
        scores[name] = CalibrationScores(
            log_loss=mean_over(losses(p, truth), documents, sources=sources, scale="positive"),
            brier=mean_over(squares(p, truth), documents, sources=sources, scale="positive"),
            ece=errors.plain,
            ece_equal_mass=errors.equal_mass,
            ece_debiased=errors.debiased,
        )
    return scores


def mean_over(
    values: np.ndarray, documents: np.ndarray, *, sources: Pairs = None, scale: Literal["plain", "positive"] = "plain"
) -> Interval:
    """The mean over elements, with an interval over documents and the sources they share."""

    def add(members: Ids, groups: Ids, count: int) -> np.ndarray:
        rows = [np.bincount(groups, values[members], minlength=count), np.bincount(groups, minlength=count)]
        return np.stack(rows, axis=1).astype(float)

    sums = Grouping(documents, int(documents.max()) + 1, sources).sums(add)
    mean = estimates(sums, lambda totals: {"mean": totals[..., 0] / totals[..., 1]})["mean"]
    return mean.interval(scale)

"""Base classes of calibration methods: maps from scores to calibrated probabilities.

    calibrator = Temperature.fit(scores, truth)  # of elements that the model was not trained on
    calibrator(other_scores)                     # probabilities
    calibrator.to_dict()                         # plain data; `calibrator_from_dict` reads it

Scores are margins, (n,), the log-odds of "yes" in a binary question (does a segment begin at this
element?), or class logits, (n, C). An element is a sentence or line of a document. The model's own
probabilities are the sigmoid or softmax of its scores. The identity is the calibrator that returns
them unchanged; it has the default parameters of every method.

Every fit is regularized towards the identity: the model's own probabilities are added as a
pseudo-element with the weight of one element. So a fit exists for any input (one element, one
class, constant or perfect scores), and on the fitting data its log loss is never above that of the
identity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike

from neural.core.names import to_snake_case
from neural.tasks.segmentation.probability import (
    MIN_PROBABILITY,
    check_scores,
    check_targets,
    log_loss,
    scores_to_probabilities,
    sigmoid,
)

PRIOR_WEIGHT = 1.0
"""Weight of the pseudo-element in a fit, relative to a real element."""


@dataclass_transform(frozen_default=True)
class Calibrator(ABC):
    """A map from scores to probabilities; the default parameters are the identity.

    Subclasses are frozen dataclasses of numbers and tuples of numbers.
    """

    complexity_rank: ClassVar[int]
    """Rank of the method from simple (0) to complex; of equally good methods the simpler wins."""
    accepted_columns: ClassVar[tuple[int, float]]
    """Minimum and maximum number of columns of the scores; margins are one column."""
    is_monotonic: ClassVar[bool] = True
    """True if a larger margin never gets a smaller probability."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    def accepts(cls, scores: np.ndarray) -> bool:
        """True if the method applies to scores of this shape."""
        return (
            cls.accepted_columns[0]
            <= (1 if scores.ndim == 1 else scores.shape[1])
            <= cls.accepted_columns[1]
        )

    @classmethod
    def fit(cls, scores: ArrayLike, truth: ArrayLike) -> Self:
        """Calibrator fitted by log loss; the identity if the fit is not better than it.

        `truth` is 0 or 1 for margins, the class index for logits, (n,).
        """
        s = cls._check_scores(scores)
        t = check_targets(truth, s)
        if not len(s):
            raise ValueError("nothing to calibrate on: there are no scores")
        fitted, identity = cls.fit_scores(s, t), cls()
        is_better = log_loss(fitted.predict_probabilities(s), t) <= log_loss(
            identity.predict_probabilities(s), t
        )
        return fitted if is_better else identity

    def __call__(self, scores: ArrayLike) -> np.ndarray:
        """Of margins, P(positive class), (n,); of logits, the class probabilities, (n, C)."""
        return self.predict_probabilities(self._check_scores(scores))

    @classmethod
    @abstractmethod
    def fit_scores(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Fit to scores and targets that `fit` has checked."""

    @abstractmethod
    def predict_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of scores that `__call__` has checked."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; floats round-trip exactly."""
        return {
            "method": self.name(),
            **{name: getattr(self, name) for name in self._parameter_names()},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; `saved` may come from a JSON file, where tuples are lists."""
        values = {key: value for key, value in saved.items() if key != "method"}
        if set(values) != set(cls._parameter_names()):
            raise ValueError(
                f"a saved {cls.name()} calibration cannot have the parameters "
                f"{', '.join(sorted(values)) or 'none'}"
            )
        return cls(
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in values.items()
            }
        )

    def __post_init__(self) -> None:
        for name in self._parameter_names():
            value = getattr(self, name)
            for number in value if isinstance(value, tuple) else (value,):
                if not isinstance(number, int | float) or not math.isfinite(number):
                    raise ValueError(
                        f"`{name}` of a {self.name()} calibration must be numbers, got {number!r}"
                    )

    @classmethod
    def name(cls) -> str:
        """Name in the registry."""
        return to_snake_case(cls.__name__)

    @classmethod
    def summary(cls) -> str:
        """The first line of the class docstring, for lists of methods."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def _parameter_names(cls) -> list[str]:
        # a dataclass, see __init_subclass__
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    @classmethod
    def _check_scores(cls, scores: ArrayLike) -> np.ndarray:
        s = check_scores(scores)
        if not cls.accepts(s):
            kind = "margins" if s.ndim == 1 else f"logits of {s.shape[1]} classes"
            raise ValueError(f"{cls.name()} does not apply to {kind}")
        return s


class MarginCalibrator(Calibrator):
    """Base class of methods for binary questions; they accept margins, or logits of two classes.

    The margin of two classes is logit[1] − logit[0].
    """

    # least and most columns of the scores; margins are one column
    accepted_columns: ClassVar[tuple[int, float]] = (1, 2)

    @classmethod
    def fit_scores(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Fit to the margins."""
        return cls.fit_margins(_to_margins(scores), truth)

    def predict_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probability of the positive class, (n,); of both classes for two logits, (n, 2)."""
        # The identity returns exactly the model's own softmax; 1 − p could differ in the last bit.
        if self == type(self)():
            return scores_to_probabilities(scores)
        p = self.predict_positive(_to_margins(scores))
        return p if scores.ndim == 1 else np.stack([1 - p, p], axis=1)

    @classmethod
    @abstractmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Fit to margins and targets of 0 and 1."""

    @abstractmethod
    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Probability of the positive class for each margin, (n,)."""


def smooth_targets(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Targets mixed with `PRIOR_WEIGHT / n` of the model's own probabilities.

    They are soft targets, (n,) for margins and (n, C) for logits. Fitting to them adds a penalty to
    the log loss: the cross-entropy with the model's own probabilities. The penalty is smallest for
    the identity, so the log loss of the best fit is never above that of the identity. No target is
    0 or 1, so the parameters of the best fit are finite.
    """
    own_probabilities = scores_to_probabilities(scores).clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    one_hot = truth if scores.ndim == 1 else np.eye(scores.shape[1])[truth]
    weight = PRIOR_WEIGHT / len(scores)
    return (one_hot + weight * own_probabilities) / (1 + weight)


def _to_margins(scores: np.ndarray) -> np.ndarray:
    return scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]


def fit_logistic(
    columns: np.ndarray, targets: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Logistic regression: weights (k,) of the columns (k, n) for soft targets (n,).

    `lower` and `upper` bound the weights.
    """
    count = len(targets)

    def evaluate(weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        margin = weights @ columns
        p = sigmoid(margin)
        loss = float((np.logaddexp(0, margin) - targets * margin).mean())
        gradient = columns @ (p - targets) / count
        hessian = (columns * (p * (1 - p))) @ columns.T / count
        return loss, gradient, hessian

    return minimize_convex(evaluate, np.zeros(len(columns)), lower, upper)


def fit_multinomial(
    logits: np.ndarray,
    targets: np.ndarray,
    basis: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """Fit a scale and a shift of every class's logits (n, C) to soft targets (n, C).

    The result, (k,), is bounded by `lower` and `upper`. `basis` (2C, k) times the result gives the
    C scales, followed by the C shifts. With an identity matrix as `basis`, all of them are free;
    a single column with ones for the scales and zeros for the shifts is one scale for all classes.
    """
    count, classes = logits.shape
    # Class-major, so that reductions over elements are contiguous.
    s, t = np.ascontiguousarray(logits.T), np.ascontiguousarray(targets.T)
    # Rows of the gradient and the Hessian.
    scale_rows = np.arange(classes)
    shift_rows = scale_rows + classes

    def evaluate(weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        scale, shift = np.split(basis @ weights, 2)
        scaled = s * scale[:, None] + shift[:, None]
        largest = scaled.max(axis=0)
        p = np.exp(scaled - largest)
        total = p.sum(axis=0)
        p /= total
        loss = (np.log(total) + largest).mean() - (t * scaled).sum() / count
        error = p - t
        gradient = np.concatenate([(error * s).sum(axis=1), error.sum(axis=1)])
        # Each p times the derivative of its scaled logit with respect to scale and shift.
        weighted = np.concatenate([p * s, p])
        hessian = -(weighted @ weighted.T)
        hessian[scale_rows, scale_rows] += (weighted[:classes] * s).sum(axis=1)
        hessian[scale_rows, shift_rows] += weighted[:classes].sum(axis=1)
        hessian[shift_rows, scale_rows] += weighted[:classes].sum(axis=1)
        hessian[shift_rows, shift_rows] += p.sum(axis=1)
        return float(loss), basis.T @ gradient / count, basis.T @ hessian @ basis / count

    return minimize_convex(evaluate, np.zeros(basis.shape[1]), lower, upper)


ConvexObjective = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]
"""Parameters → value, gradient and Hessian."""

MAX_NEWTON_STEPS = 100
"""`minimize_convex` returns its best point after this many steps, converged or not."""
RELATIVE_TOLERANCE = 1e-13
"""Stop if the decrease that the gradient predicts is below this fraction of 1 + |value|."""


def minimize_convex(
    objective: ConvexObjective, start: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Minimize a convex function within bounds by projected Newton steps (Bertsekas, 1982).

    A parameter at a bound whose gradient points outwards is left out of the step. The value at the
    result is never above that at `start`. Parameters that do not affect the value do not change.
    """
    x = start.clip(lower, upper)
    value, gradient, hessian = objective(x)
    for _ in range(MAX_NEWTON_STEPS):
        free = ~((x <= lower) & (gradient >= 0)) & ~((x >= upper) & (gradient <= 0))
        step = _newton_step(gradient, hessian, free)
        decrease = float(-gradient @ step)
        if decrease <= RELATIVE_TOLERANCE * (1 + abs(value)):
            break
        # Backtracking line search with Armijo's condition.
        step_size = 1.0
        while step_size > 1e-10:
            candidate = (x + step_size * step).clip(lower, upper)
            evaluated = objective(candidate)
            if evaluated[0] <= value + 1e-4 * float(gradient @ (candidate - x)):
                break
            step_size /= 2
        else:  # no decrease that floats can resolve
            break
        x, (value, gradient, hessian) = candidate, evaluated
    return x


def _newton_step(gradient: np.ndarray, hessian: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Newton step in the parameters where `free` is True; 0 in the others."""
    step = np.zeros_like(gradient)
    scale = np.sqrt(np.diag(hessian))
    free = free & (scale > 0)
    if free.any():
        # Rescale to a unit diagonal; the small ridge makes the matrix invertible if parameters are
        # redundant.
        scaled = hessian[np.ix_(free, free)] / np.outer(scale[free], scale[free])
        step[free] = (
            -np.linalg.solve(scaled + 1e-9 * np.eye(free.sum()), gradient[free] / scale[free])
            / scale[free]
        )
    return step

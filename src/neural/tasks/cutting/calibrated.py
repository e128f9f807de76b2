"""What every calibration promises: probabilities that mean what they say, from scores whose truth is known.

    fitted = Temperature.fit(scores, truth)      # scores and truth of elements that the model has not learned from
    fitted(other_scores)                         # probabilities
    fitted.to_dict()                             # plain data; `calibration_choice.calibration_of` reads it

Every method could also leave things as they are, and is pulled there as if **one** more element had been seen that came
out as the model said. So a fit is defined whatever it is given (one element, one class, scores that are all alike or
perfect), and on what it was fitted to its log loss is never above that of the scores themselves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike

from neural.core.names import snake
from neural.tasks.cutting.probability import SMALLEST, as_scores, as_truth, log_loss, plain_probabilities

PULL = 1.0
"""Elements' worth of weight that the model's own probabilities have in a fit."""


@dataclass_transform(frozen_default=True)
class Calibration(ABC):
    """A map from scores to probabilities. Its fields are what was learned; without any, it changes nothing.

    Subclasses are frozen dataclasses of numbers and tuples of numbers.
    """

    simplicity: ClassVar[int]
    """Of two that do equally well, the one with the smaller number is taken."""
    widths: ClassVar[tuple[int, float]]
    """The fewest and the most columns of scores; the margins of a yes/no question count as one."""
    keeps_order: ClassVar[bool] = True
    """Whether of two margins the larger never gets the smaller probability."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    def takes(cls, scores: np.ndarray) -> bool:
        """Whether the method is one for such scores."""
        return cls.widths[0] <= (1 if scores.ndim == 1 else scores.shape[1]) <= cls.widths[1]

    @classmethod
    def fit(cls, scores: ArrayLike, truth: ArrayLike) -> Self:
        """The map of this kind with the least log loss; one that changes nothing rather than a worse one."""
        s = cls._accepted(scores)
        t = as_truth(truth, s)
        if not len(s):
            raise ValueError("nothing to calibrate on: there are no scores")
        found, nothing = cls.learned(s, t), cls()
        better = log_loss(found.probabilities(s), t) <= log_loss(nothing.probabilities(s), t)
        return found if better else nothing

    def __call__(self, scores: ArrayLike) -> np.ndarray:
        """P(yes) of margins, (n,); a row that sums to 1 of logits, (n, C)."""
        return self.probabilities(self._accepted(scores))

    @classmethod
    @abstractmethod
    def learned(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """The best map of this kind for scores that were checked."""

    @abstractmethod
    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The map, for scores that were checked."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `json` writes; every float comes back as it was."""
        return {"method": self.name(), **{one: getattr(self, one) for one in self._learned()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, also after a file."""
        values = {key: value for key, value in saved.items() if key != "method"}
        if set(values) != set(cls._learned()):
            raise ValueError(f"a saved {cls.name()} calibration cannot hold {', '.join(sorted(values)) or 'nothing'}")
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})

    def __post_init__(self) -> None:
        for one in self._learned():
            value = getattr(self, one)
            for number in value if isinstance(value, tuple) else (value,):
                if not isinstance(number, int | float) or not math.isfinite(number):
                    raise ValueError(f"`{one}` of a {self.name()} calibration must be numbers, got {number!r}")

    @classmethod
    def name(cls) -> str:
        """As the registry calls it."""
        return snake(cls.__name__)

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def _learned(cls) -> list[str]:
        return [one.name for one in fields(cls)]  # type: ignore[arg-type]  # a dataclass, see __init_subclass__

    @classmethod
    def _accepted(cls, scores: ArrayLike) -> np.ndarray:
        s = as_scores(scores)
        if not cls.takes(s):
            asked = "the margins of a yes/no question" if s.ndim == 1 else f"{s.shape[1]} classes"
            raise ValueError(f"{cls.name()} is no method for {asked}")
        return s


class OfMargins(Calibration):
    """A calibration of yes/no questions. Of two classes, the margin is the second's logit minus the first's."""

    widths: ClassVar[tuple[int, float]] = (1, 2)

    @classmethod
    def learned(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """From the margins."""
        return cls.learned_from(_margin(scores), truth)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """From the margins; of two classes, both."""
        if self == type(self)():   # to the last bit, which 1 − yes is not
            return plain_probabilities(scores)
        yes = self.yes(_margin(scores))
        return yes if scores.ndim == 1 else np.stack([1 - yes, yes], axis=1)

    @classmethod
    @abstractmethod
    def learned_from(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """The best map of this kind, of margins and a truth of 0 and 1."""

    @abstractmethod
    def yes(self, margins: np.ndarray) -> np.ndarray:
        """P(yes)."""


def pulled(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The truth as shares between 0 and 1: each element's own, and its part of `PULL` as the model says.

    Fitting to these adds a penalty that is least where the probabilities stay as they are (the cross-entropy with the
    model's own), so the best fit is no worse than no change; and no share is 0 or 1, so the best fit is finite.
    """
    own = plain_probabilities(scores).clip(SMALLEST, 1 - SMALLEST)
    hard = truth if scores.ndim == 1 else np.eye(scores.shape[1])[truth]
    little = PULL / len(scores)
    return (hard + little * own) / (1 + little)


def _margin(scores: np.ndarray) -> np.ndarray:
    return scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]

"""What a focus model is judged by: whether it is right, whether it looked at the right thing, how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BINS = 20
"""Of the heat map, along each side of [0, 1]²."""
CELLS = ("focus right, prediction right", "focus right, prediction wrong",
         "focus wrong, prediction right", "focus wrong, prediction wrong")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Examples that a model was shown, one number each."""

    label: np.ndarray
    predicted: np.ndarray
    """Class, by mixing as it was trained."""
    likelihood: np.ndarray
    """Probability of the true class, P(y)."""
    confidence: np.ndarray
    """Probability of the predicted class."""
    by_focus: np.ndarray
    """Class that the segment with the most focus alone is taken for."""
    largest: np.ndarray
    """The largest weight of the focus."""
    entropy: np.ndarray
    """Of the focus, in nats: 0 is one segment, log m all alike."""
    mass: np.ndarray | None
    """Focus on the foreground, a_z; NaN of an example of which nobody knows it, None where nobody knows any."""
    found: np.ndarray | None
    """Whether the segment with the most focus is foreground."""

    @property
    def right(self) -> np.ndarray:
        """Whether the prediction is."""
        return self.predicted == self.label

    def known(self) -> Judged | None:
        """The examples whose foreground is known; None where there are none."""
        if self.mass is None or np.isnan(self.mass).all():
            return None
        kept = ~np.isnan(self.mass)
        return Judged(**{name: getattr(self, name)[kept] for name in self.__dataclass_fields__})


def scores(one: Judged, threshold: float) -> dict[str, float]:
    """By name; those about the foreground only where it is known. All shares are 0 to 1."""
    found = {
        "loss": float(-np.log(np.maximum(one.likelihood, 1e-30)).mean()),
        "accuracy": _share(one.right), "accuracy_argmax": _share(one.by_focus == one.label),
        "confidence": _share(one.confidence), "focus_confidence": _share(one.largest),
        "focus_entropy": _share(one.entropy),
    }  # fmt: skip
    known = one.known()
    if known is None or known.mass is None or known.found is None:
        return found
    one, mass, seen = known, known.mass, known.found
    found |= {
        "focus_accuracy": _share(seen), "foreground_mass": _share(mass), "saif": saif(one, threshold),
    }  # fmt: skip
    found |= dict(zip(("cell_tt", "cell_tf", "cell_ft", "cell_ff"), cells(one), strict=True))
    return found | {
        f"focus_accuracy_class_{label}": _share(seen[one.label == label]) for label in np.unique(one.label)
    }


def saif(one: Judged, threshold: float) -> float:
    """Strongly accurate and interpretable: a_z and P(y) both above the threshold; the share of such examples."""
    assert one.mass is not None
    return _share((one.mass > threshold) & (one.likelihood > threshold))


def cells(one: Judged) -> list[float]:
    """Shares of the four cells, focus right or wrong × prediction right or wrong, in the order of `CELLS`."""
    assert one.found is not None
    return [_share((one.found == focus) & (one.right == right)) for focus in (True, False) for right in (True, False)]


def heat(one: Judged, bins: int = BINS) -> np.ndarray:
    """Shares of examples on a grid over [0, 1]²: rows by a_z, columns by P(y), from 0 up; they sum to 1.

    All 0 where the foreground is not known.
    """
    known = one.known()
    if known is None or known.mass is None:
        return np.zeros((bins, bins))
    found, _, _ = np.histogram2d(_inside(known.mass), _inside(known.likelihood), bins=bins, range=((0, 1), (0, 1)))
    return found / len(known.label)


def _inside(values: np.ndarray) -> np.ndarray:
    """Rounding may lead a probability past 1; it is counted in the last bin, not lost."""
    return np.clip(values, 0.0, 1.0)


def _share(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")

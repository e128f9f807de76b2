"""Metrics of focus models: accuracy, accuracy of the focus, SAIF, confidence, focus entropy.

A focus model distributes its focus, weights that sum to 1, over the m segments of an example. The
foreground is the segments that decide the label. A paradigm (paradigm.py) is the loss that the
model was trained with; it also defines how the model predicts. SAIF (strongly accurate and
interpretable) is the share of examples with both a high focus on the foreground and a high
probability of the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HEATMAP_BINS = 20
"""Bins of the heat map along each side of [0, 1]²."""
CONFUSION_LABELS = (
    "focus right, prediction right",
    "focus right, prediction wrong",
    "focus wrong, prediction right",
    "focus wrong, prediction wrong",
)


@dataclass(frozen=True, kw_only=True)
class FocusPredictions:
    """Predictions of a model, one value per example in each array."""

    label: np.ndarray
    """Index of the true class."""
    predicted: np.ndarray
    """Predicted class, by the paradigm's own prediction rule."""
    likelihood: np.ndarray
    """Probability of the true class, P(y)."""
    confidence: np.ndarray
    """Probability of the predicted class."""
    argmax_predicted: np.ndarray
    """Class predicted from the segment with the largest focus alone."""
    max_focus: np.ndarray
    """Largest focus weight."""
    entropy: np.ndarray
    """Entropy of the focus in nats: 0 for one segment, log m for a uniform focus."""
    foreground_mass: np.ndarray | None
    """Sum of the focus weights of the foreground. NaN for an example with unknown foreground; None
    if it is unknown for all."""
    focus_correct: np.ndarray | None
    """Whether the segment with the largest focus is foreground."""

    @property
    def correct(self) -> np.ndarray:
        """Whether the predicted class is the label."""
        return self.predicted == self.label

    def with_known_foreground(self) -> FocusPredictions | None:
        """The examples whose foreground is known, or None."""
        if self.foreground_mass is None or np.isnan(self.foreground_mass).all():
            return None
        is_known = ~np.isnan(self.foreground_mass)
        return FocusPredictions(
            **{name: getattr(self, name)[is_known] for name in self.__dataclass_fields__}
        )


def compute_scores(predictions: FocusPredictions, threshold: float) -> dict[str, float]:
    """All metrics by name; those of the foreground only if it is known. Shares are 0 to 1.

    `threshold` is that of SAIF. `cell_tf` is the share of examples whose focus is right (t) and
    whose prediction is wrong (f).
    """
    scores = {
        "loss": float(-np.log(np.maximum(predictions.likelihood, 1e-30)).mean()),
        "accuracy": _mean(predictions.correct),
        "accuracy_argmax": _mean(predictions.argmax_predicted == predictions.label),
        "confidence": _mean(predictions.confidence),
        "focus_confidence": _mean(predictions.max_focus),
        "focus_entropy": _mean(predictions.entropy),
    }
    known = predictions.with_known_foreground()
    if known is None or known.foreground_mass is None or known.focus_correct is None:
        return scores
    predictions, mass, focus_correct = known, known.foreground_mass, known.focus_correct
    scores |= {
        "focus_accuracy": _mean(focus_correct),
        "foreground_mass": _mean(mass),
        "saif": compute_saif(predictions, threshold),
    }
    scores |= dict(
        zip(("cell_tt", "cell_tf", "cell_ft", "cell_ff"), compute_cells(predictions), strict=True)
    )
    return scores | {
        f"focus_accuracy_class_{label}": _mean(focus_correct[predictions.label == label])
        for label in np.unique(predictions.label)
    }


def compute_saif(predictions: FocusPredictions, threshold: float) -> float:
    """SAIF: share of examples whose foreground mass and P(y) are both above the threshold."""
    assert predictions.foreground_mass is not None
    return _mean((predictions.foreground_mass > threshold) & (predictions.likelihood > threshold))


def compute_cells(predictions: FocusPredictions) -> list[float]:
    """Shares of focus right/wrong × prediction right/wrong, in the order of `CONFUSION_LABELS`."""
    assert predictions.focus_correct is not None
    return [
        _mean((predictions.focus_correct == focus_correct) & (predictions.correct == correct))
        for focus_correct in (True, False)
        for correct in (True, False)
    ]


def compute_heatmap(predictions: FocusPredictions, bins: int = HEATMAP_BINS) -> np.ndarray:
    """Shares of examples on a grid over [0, 1]²: rows by foreground mass, columns by P(y).

    The sum is 1; all entries are 0 if the foreground is unknown.
    """
    known = predictions.with_known_foreground()
    if known is None or known.foreground_mass is None:
        return np.zeros((bins, bins))
    counts, _, _ = np.histogram2d(
        _clip_to_unit(known.foreground_mass),
        _clip_to_unit(known.likelihood),
        bins=bins,
        range=((0, 1), (0, 1)),
    )
    return counts / len(known.label)


def _clip_to_unit(values: np.ndarray) -> np.ndarray:
    # Rounding may push a probability above 1; histogram2d would drop it.
    return np.clip(values, 0.0, 1.0)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")

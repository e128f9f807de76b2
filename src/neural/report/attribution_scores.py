"""Scores of explanations, as pages and figures show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neural.stats.estimate import Estimate


def format_gain(faithfulness: dict[str, Any] | None) -> str:
    """`+0.31 (+0.12 … +0.50)`; empty if it was not measured."""
    if faithfulness is None or faithfulness["value"] is None:
        return ""
    return Estimate.from_dict(faithfulness, n=faithfulness["examples"]).format(signed=True)


def find_unit(answer: dict[str, Any]) -> str:
    """Unit of faithfulness: nats of an answer's log-probability; a score has a unit of its own."""
    return "units of the score" if answer["probability"] is None else "nats"


def scale_scores(values: list[float | None]) -> np.ndarray:
    """Scores divided by the largest absolute one; missing ones are NaN."""
    scores = np.array([np.nan if value is None else value for value in values], dtype=float)
    largest = float(np.nanmax(np.abs(scores), initial=0.0))
    scaled: np.ndarray = scores / largest if largest > 0 else scores
    return scaled

"""Data of pictures that several checks share: heads marked on a grid, and curves with marked steps.

A check builds the picture of its finding (`AnalysisCheck.build_figure`); the page draws it with the
file of the same kind in web/src/figures/.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from neural.findings.check import FigureData
from neural.findings.record import Record

FigureTone = Literal["note", "warning"]
"""Whether what a picture marks is a fact or a problem: the page draws problems in orange."""


def mark_head(
    layer: int, head: int, label: str, *, detail: str = "", onset: int | None = None
) -> dict[str, Any]:
    """A marked head: a label of a few words, a sentence, and the step since which it holds."""
    return {
        "layer": int(layer),
        "head": int(head),
        "label": label,
        "detail": detail,
        "onset": None if onset is None else int(onset),
    }


def build_head_grid(
    run: Record, marks: Iterable[Mapping[str, Any]], *, tone: FigureTone = "warning"
) -> FigureData:
    """All heads of a run as squares, some of them marked (`mark_head`).

    `map_steps` of a mark are the steps whose maps show its change: the first, the onset, the last.
    """
    steps = list(map(int, run.map_steps()))
    last_step = steps[-1] if steps else None
    return {
        "kind": "head_grid",
        "tone": tone,
        "heads": list(map(int, run.metadata("attention/heads") or ())),
        "step": last_step,
        "marks": [{**mark, "map_steps": _select_map_steps(steps, mark["onset"])} for mark in marks],
    }


def _select_map_steps(steps: Sequence[int], onset: int | None) -> list[int]:
    """The first step with maps, the first one at or after the onset, and the last one."""
    if not steps:
        return []
    after_onset = [step for step in steps if onset is not None and step >= onset]
    return sorted({steps[0], *after_onset[:1], steps[-1]})


def build_curve(
    metrics: Sequence[str] = (),
    *,
    series: Iterable[tuple[str, np.ndarray, np.ndarray]] = (),
    marks: Sequence[tuple[int, str]] = (),
    levels: Sequence[tuple[float, str]] = (),
    interval: tuple[int, int, str] | None = None,
    y_label: str = "",
) -> FigureData:
    """A curve by training step: logged `metrics` of the run, or `series` of (label, steps, values).

    `marks` are (step, label) at which the picture draws a line, `levels` (value, label) horizontal
    lines, and `interval` (first step, last step, label) is shaded.
    """
    return {
        "kind": "curve",
        "metrics": list(metrics),
        "series": [
            {
                "label": label,
                "steps": [int(step) for step in steps],
                "values": [float(value) if math.isfinite(value) else None for value in values],
            }
            for label, steps, values in series
        ],
        "marks": [{"step": int(step), "label": label} for step, label in marks],
        "levels": [{"value": float(value), "label": label} for value, label in levels],
        "interval": None
        if interval is None
        else {"first": int(interval[0]), "last": int(interval[1]), "label": interval[2]},
        "y_label": y_label,
    }

"""Metrics of runs over steps; runs that differ only by their seed are one line with a band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.core.names import suggest_name
from neural.findings.run_loading import (
    MissingDataError,
    group_experiments,
    load_mean_curve,
    load_scalar_curve,
)
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figure import FigureKind, FigureRequest
from neural.report.plots import average_curves
from neural.runs.run import Run
from neural.stats.correlation import Curve

DEFAULT_METRICS = ("train/loss", "valid/loss")
MEASURE_PREFIX = "attention/"
"""`attention/entropy` is the mean of the measure `entropy` over all layers and heads."""
PANEL_HEIGHT_SHARE = 0.5
"""Height of a panel, relative to the width."""
COLORS = ("#0b66b0", "#d1620a", "#0d8a63", "#b6478c", "#8a6d00", "#5a55c8", "#c2323e", "#4d7f9c")
"""Distinguishable with red-green color blindness (after Okabe and Ito, 2008)."""
LINE_STYLES = ("-", "--", "-.", ":")
"""Tell the lines apart in grey."""
MAX_MARKED_POINTS = 12


class Curves(FigureKind):
    """Metrics over steps, of one run or several; the band is the standard error over seeds."""

    needs_attention = False
    takes_height = True

    def draw(self, request: FigureRequest) -> Figure:
        """One panel per metric, one above the other."""
        runs = request.runs
        metrics = request.metrics or [
            name for name in DEFAULT_METRICS if any(name in run.scalar_names() for run in runs)
        ]
        _check_metrics(runs, metrics)
        height = request.height or PANEL_HEIGHT_SHARE * request.width * len(metrics) + 12
        figure = Figure(figsize=(request.width / 72, height / 72), layout="constrained")
        panels = figure.subplots(len(metrics), 1, squeeze=False, sharex=True)[:, 0]
        for panel, metric in zip(panels, metrics, strict=True):
            _draw_metric(panel, metric, runs)
        panels[-1].set_xlabel("step")
        handles, labels = panels[0].get_legend_handles_labels()
        if len(labels) > 1 or any("seeds" in label for label in labels):
            panels[0].legend(handles, labels)
        return figure


def _check_metrics(runs: Sequence[Run], metrics: Sequence[str]) -> None:
    """FigureError if no run has a metric, or if there is nothing to draw."""
    known = sorted(
        {name for run in runs for name in run.scalar_names()}
        | {f"{MEASURE_PREFIX}{name}" for run in runs for name in run.measure_names()}
    )
    if not known:
        raise FigureError(f"{runs[0].name} has no curves yet: nothing was logged")
    if not metrics:
        raise FigureError(f"no losses were logged; choose with --metric: {', '.join(known)}")
    for metric in metrics:
        if metric not in known:
            hint = suggest_name(metric, known) or f"there are {', '.join(known)}"
            raise FigureError(f"no run has the metric `{metric}`; {hint}")


def _draw_metric(panel: Axes, metric: str, runs: Sequence[Run]) -> None:
    index = 0
    for groups in group_experiments(runs).values():
        for label, group in groups.items():
            curves = [curve for run in group if (curve := _load_curve(run, metric)) is not None]
            if curves:
                _draw_line(panel, label, curves, index)
            index += 1
    panel.set_ylabel(metric)
    panel.grid(color="#dfe4ea", linewidth=0.4)
    panel.set_axisbelow(True)


def _draw_line(panel: Axes, label: str, curves: Sequence[Curve], index: int) -> None:
    steps, mean, error = average_curves(curves)
    count = len(curves)
    color = COLORS[index % len(COLORS)]
    panel.plot(
        steps,
        mean,
        # starts with a space, because matplotlib hides labels that start with _
        label=f" {label}" + (f", {count} seeds ± SE" if count > 1 else ""),
        linewidth=1.1,
        color=color,
        linestyle=LINE_STYLES[index % len(LINE_STYLES)],
        marker="o" if len(steps) <= MAX_MARKED_POINTS else "",
        markersize=2.5,
    )
    if count > 1:
        panel.fill_between(steps, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)


def _load_curve(run: Run, metric: str) -> Curve | None:
    """The curve of a run; None if it was not logged."""
    try:
        if metric.startswith(MEASURE_PREFIX) and metric not in run.scalar_names():
            return load_mean_curve(run, metric.removeprefix(MEASURE_PREFIX))
        curve = load_scalar_curve(run, metric, "it was not logged")
    except MissingDataError:
        return None
    finite = np.isfinite(curve.values)
    return Curve(curve.steps[finite], curve.values[finite]) if finite.any() else None

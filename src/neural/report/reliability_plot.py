"""Reliability diagrams: predicted probability against observed frequency, and bin counts below.

A calibration method maps predicted probabilities to others that agree better with observed
frequencies. An element is one prediction, such as that of a segment boundary before a sentence. In
the example, `choice` is a CalibrationChoice (tasks/segmentation/calibration_selection.py), which
compares several methods.

    draw_reliability(choice.diagrams, folder / "reliability", title="P(boundary)")  # .svg and .png
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from neural.report.plots import PLOT_STYLE, save_figure
from neural.tasks.segmentation.calibration_error import ReliabilityDiagram

COLORS = ("0.55", "C0", "C1", "C2")
"""By order of the diagrams; the first one, grey, is the uncalibrated baseline."""
MARKERS = ("o", "D", "s", "^")


def draw_reliability(
    diagrams: Mapping[str, ReliabilityDiagram],
    path: Path,
    *,
    title: str,
    xlabel: str = "predicted probability",
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:
    """Draw all diagrams, by calibration method, into one figure; `path` has no suffix."""
    with matplotlib.rc_context(PLOT_STYLE):
        figure = _draw_diagrams(diagrams, title, xlabel)
        return [save_figure(figure, path.with_name(f"{path.name}.{suffix}")) for suffix in formats]


def _draw_diagrams(diagrams: Mapping[str, ReliabilityDiagram], title: str, xlabel: str) -> Figure:
    figure = Figure(figsize=(6, 7.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 1], [0, 1], color="0.3", linewidth=1, linestyle="--", label=" perfect")
    for index, (name, diagram) in enumerate(diagrams.items()):
        color = COLORS[index % len(COLORS)]
        observed = np.array(diagram.observed_frequency)
        above.errorbar(
            np.array(diagram.mean_probability),
            observed,
            yerr=np.stack([observed - diagram.low, diagram.high - observed]),
            color=color,
            marker=MARKERS[index % len(MARKERS)],
            markersize=5,
            linewidth=1.2,
            elinewidth=1,
            capsize=2,
            label=f" {name}",  # a space, because matplotlib hides labels that start with _
        )
        # the bars of all methods share the width of a bin
        edges = np.array([0.0, *diagram.edges, 1.0])  # `diagram.edges` are the inner ones
        width = np.diff(edges) / len(diagrams)
        below.bar(
            edges[:-1] + index * width,
            diagram.all_counts,  # also of empty bins
            width=width * 0.92,
            align="edge",
            color=color,
        )
    above.set(ylabel="observed frequency (95 % intervals)", ylim=(-0.02, 1.02), title=title)
    above.legend(loc="upper left")
    below.set(xlabel=xlabel, ylabel="elements", xlim=(-0.02, 1.02), yscale="log", ylim=(0.7, None))
    below.set_axisbelow(True)
    # plain numbers, because the default is powers in math text, which PLOT_STYLE turns off
    below.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    return figure

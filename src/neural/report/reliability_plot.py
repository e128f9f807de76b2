"""Reliability diagrams: predicted probability against observed frequency in bins.

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
from neural.tasks.segmentation.calibration_selection import describe_method

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
    """A point for each bin, with its 95 % interval, and a faint line over the range of the bin.

    Points are not joined: what lies between two bins was not observed.
    """
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.3", linewidth=1, linestyle="--", label=" perfect")
    for index, (name, diagram) in enumerate(diagrams.items()):
        color = COLORS[index % len(COLORS)]
        observed, edges = np.array(diagram.observed_frequency), select_bin_edges(diagram)
        axes.hlines(observed, *edges, colors=color, linewidth=1, alpha=0.35)
        axes.errorbar(
            np.array(diagram.mean_probability),
            observed,
            yerr=np.stack([observed - diagram.low, diagram.high - observed]),
            color=color,
            marker=MARKERS[index % len(MARKERS)],
            markersize=5,
            linestyle="none",
            elinewidth=1,
            capsize=2,
            # a space, because matplotlib hides labels that start with _
            label=f" {describe_method(name)}",
        )
    counts = next(iter(diagrams.values())).counts
    axes.set(
        xlabel=f"{xlabel}; {len(counts)} bins of {_format_range(counts)} elements",
        ylabel="observed frequency (95 % intervals)",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        title=title,
    )
    axes.legend(loc="upper left")
    return figure


def select_bin_edges(diagram: ReliabilityDiagram) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edges of the bins that are not empty."""
    edges = np.array([0.0, *diagram.edges, 1.0])  # `diagram.edges` are the inner ones
    occupied = np.array(diagram.all_counts) > 0
    return edges[:-1][occupied], edges[1:][occupied]


def _format_range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"

"""Plots of runs as files; the same runs give the same bytes.

A run is the folder of one training. An experiment is a group of runs on the same data that differ
only by their seed.

    files, skipped = draw_plots(runs, Path("plots"))

The files, each as SVG and PNG, with the name of the data set:

    train_loss_<data>         one line per experiment; the band is the standard error over seeds
    val_loss_<data>           the same on validation data
    attention_metrics_<data>  mean entropy of attention above, mean span below: the distance between
                              query and key, weighted by attention
    layer_similarity_<data>   one line per pair of layers, one panel per experiment
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.core.files import open_atomic
from neural.findings.run_loading import (
    MissingDataError,
    group_experiments,
    load_mean_curve,
    load_measure,
    load_scalar_curve,
)
from neural.runs.run import Run
from neural.stats.correlation import Curve

ExperimentGroups = Mapping[str, Sequence[Run]]
"""Runs by experiment label; those of one label differ only by their seed."""

MAX_LINE_POINTS = 200
"""Longer curves are averaged over blocks of steps."""
MAX_LEGEND_ROWS = 15
"""Entries in a column of a legend of pairs of layers."""
PLOT_STYLE = {
    "svg.hashsalt": "neural",  # fixed, so that the ids in SVG files are reproducible
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # labels come from the user and may contain `$`
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}
LINE_STYLES = ("-", "--", "-.", ":")
"""By distance of two layers: solid for neighbours, dotted for a distance of 4 or more."""
FILE_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
"""Metadata by file format: no date and no version, so that files are reproducible."""


def draw_plots(
    runs: Iterable[Run], folder: Path, *, formats: Sequence[str] = ("svg", "png")
) -> tuple[list[Path], list[str]]:
    """Draw all plots that the runs have data for.

    Returns the files, and a line with the reason for each skipped plot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    skipped: list[str] = []
    for data, groups in group_experiments(runs).items():
        for name, draw in PLOTS_BY_NAME.items():
            try:
                with matplotlib.rc_context(PLOT_STYLE):
                    figure = draw(groups)
                    figure.suptitle(data)
                    files += [
                        save_figure(figure, folder / f"{name}_{data}.{suffix}")
                        for suffix in formats
                    ]
            except MissingDataError as error:
                skipped.append(f"{name}_{data}: {error}")
    return files, skipped


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure atomically and without a date."""
    suffix = path.suffix.removeprefix(".")
    with open_atomic(path, durable=False) as file:
        figure.savefig(file, format=suffix, metadata=FILE_METADATA.get(suffix))
    return path


def train_loss(groups: ExperimentGroups) -> Figure:
    """Loss of the training batches."""
    return _draw_losses(groups, "train/loss", "training loss (nats)")


def val_loss(groups: ExperimentGroups) -> Figure:
    """Loss on the validation data."""
    return _draw_losses(groups, "valid/loss", "validation loss (nats)")


def attention_metrics(groups: ExperimentGroups) -> Figure:
    """Entropy and span, averaged over all layers and heads."""
    figure = Figure(figsize=(7, 7), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for panel, (name, ylabel) in zip(
        panels, (("entropy", "entropy (nats)"), ("span", "span (positions)")), strict=True
    ):
        for label, runs in groups.items():
            _draw_band(
                panel, _label_with_seeds(label, runs), [load_mean_curve(run, name) for run in runs]
            )
        panel.set_ylabel(ylabel)
    panels[1].set_xlabel("step")
    panels[0].legend()
    return figure


def layer_similarity(groups: ExperimentGroups) -> Figure:
    """Cosine similarity of the attention of two layers, 0 to 1, for every recorded pair.

    The color stands for the lower layer, the line style for the distance of the two layers.
    """
    figure = Figure(figsize=(8, 4 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, squeeze=False, sharex=True)[:, 0]
    for panel, (label, runs) in zip(panels, groups.items(), strict=True):
        curves: dict[tuple[int, int], list[Curve]] = {}
        for run in runs:
            steps, values = load_measure(run, "cosine_between")
            for i, j in np.argwhere(np.isfinite(values).any(axis=0)):
                curves.setdefault((int(i), int(j)), []).append(Curve(steps, values[:, i, j]))
        if not curves:
            raise MissingDataError(f"no layer similarity was recorded for {label}")
        for (i, j), seed_curves in sorted(curves.items()):
            color = matplotlib.colormaps["viridis"](i / max(1, max(first for first, _ in curves)))
            _draw_band(
                panel,
                f"layers {i + 1}–{j + 1}",
                seed_curves,
                color=color,
                linestyle=LINE_STYLES[min(j - i, len(LINE_STYLES)) - 1],
            )
        panel.set_title(_label_with_seeds(label, runs), fontsize=10)
        panel.set_ylabel("cosine similarity")
        panel.set_ylim(0, 1)
        panel.legend(
            ncols=math.ceil(len(curves) / MAX_LEGEND_ROWS),
            fontsize=8,
            loc="center left",
            bbox_to_anchor=(1, 0.5),
        )
    panels[-1].set_xlabel("step")
    return figure


PLOTS_BY_NAME: dict[str, Callable[[ExperimentGroups], Figure]] = {
    draw.__name__: draw for draw in (train_loss, val_loss, attention_metrics, layer_similarity)
}
"""By name of the function, which is also the start of the file name."""


def average_curves(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps that all curves share, their mean there and its standard error, (point,) each.

    All three are averaged over blocks of steps if there are more than MAX_LINE_POINTS. The standard
    error is NaN for a single curve.
    """
    steps = curves[0].steps
    for curve in curves[1:]:
        steps = np.intersect1d(steps, curve.steps)
    if not len(steps):
        raise MissingDataError("the seeds have no step in common")
    values = np.stack(
        [np.asarray(curve.values, float)[np.searchsorted(curve.steps, steps)] for curve in curves]
    )
    block_size = math.ceil(len(steps) / MAX_LINE_POINTS)
    starts = np.arange(0, len(steps), block_size)
    sizes = np.diff([*starts, len(steps)])
    values = np.add.reduceat(values, starts, axis=1) / sizes
    block_steps = np.add.reduceat(steps.astype(float), starts) / sizes
    count = len(curves)
    error = (
        values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(len(starts), np.nan)
    )
    return block_steps, values.mean(axis=0), error


def _draw_losses(groups: ExperimentGroups, name: str, ylabel: str) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    for label, runs in groups.items():
        _draw_band(
            panel,
            _label_with_seeds(label, runs),
            [load_scalar_curve(run, name, "it was not logged") for run in runs],
        )
    panel.set_xlabel("step")
    panel.set_ylabel(ylabel)
    panel.legend()
    return figure


def _label_with_seeds(label: str, runs: Sequence[Run]) -> str:
    return f"{label} ({len(runs)} seed{'s' * (len(runs) != 1)})"


def _draw_band(panel: Axes, label: str, curves: Sequence[Curve], **style: Any) -> None:
    """Mean of the curves, one per seed, and a band of its standard error."""
    steps, mean, error = average_curves(curves)
    # starts with a space, because matplotlib hides labels that start with _
    (line,) = panel.plot(steps, mean, label=f" {label}", linewidth=1.5, **style)
    if len(curves) > 1:
        panel.fill_between(
            steps, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0
        )

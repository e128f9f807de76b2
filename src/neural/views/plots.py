"""The pictures of a study, as files: the same runs give the same bytes.

    files, left_out = plots(runs, Path("plots"))

    train_loss_<data>         a line for each experiment, its band the standard error over seeds
    val_loss_<data>           the same on validation data
    attention_metrics_<data>  mean entropy above, mean span below
    layer_similarity_<data>   a line for each pair of layers, a panel for each experiment
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.core.files import replacing
from neural.tracking.run import Run
from neural.views.correlation import Curve
from neural.views.reading import Missing, experiments, mean_curve, measure, scalar_curve

Groups = Mapping[str, Sequence[Run]]
"""Experiments by their label; the runs of one differ by their seed alone."""

POINTS = 200
"""Of a line; of a longer curve, each point is the mean of as many steps as it takes."""
STYLE = {
    "svg.hashsalt": "neural", "svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans",
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3,
    "legend.frameon": False, "figure.dpi": 100, "savefig.dpi": 150,
}  # fmt: skip
DASHES = ("-", "--", "-.", ":")
NO_DATES = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def plots(
    runs: Iterable[Run], folder: Path, *, formats: Sequence[str] = ("svg", "png")
) -> tuple[list[Path], list[str]]:
    """Draws every picture that the runs have the numbers for; and says which it could not, and why."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    left_out: list[str] = []
    for data, groups in experiments(runs).items():
        for name, draw in PICTURES.items():
            try:
                with matplotlib.rc_context(STYLE):
                    figure = draw(groups)
                    figure.suptitle(data)
                    made += [save(figure, folder / f"{name}_{data}.{one}") for one in formats]
            except Missing as missing:
                left_out.append(f"{name}_{data}: {missing}")
    return made, left_out


def save(figure: Figure, path: Path) -> Path:
    """Whole or not at all, without the date."""
    kind = path.suffix.removeprefix(".")
    with replacing(path, durable=False) as file:
        figure.savefig(file, format=kind, metadata=NO_DATES.get(kind))
    return path


def train_loss(groups: Groups) -> Figure:
    """Loss of the batches that were learned from."""
    return _losses(groups, "train/loss", "training loss (nats)")


def val_loss(groups: Groups) -> Figure:
    """Loss on the validation data."""
    return _losses(groups, "valid/loss", "validation loss (nats)")


def attention_metrics(groups: Groups) -> Figure:
    """Entropy and span, means over all layers and heads."""
    figure = Figure(figsize=(7, 7), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for panel, (name, words) in zip(panels, (("entropy", "entropy (nats)"), ("span", "span (positions)")), strict=True):
        for label, runs in groups.items():
            _draw(panel, _with_seeds(label, runs), [mean_curve(run, name) for run in runs])
        panel.set_ylabel(words)
    panels[1].set_xlabel("step")
    panels[0].legend()
    return figure


def layer_similarity(groups: Groups) -> Figure:
    """Cosine of the attention of two layers, 0 to 1, for every pair that was compared.

    The colour is that of the lower layer; neighbours are whole lines; the further apart, the more broken.
    """
    figure = Figure(figsize=(8, 4 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, squeeze=False, sharex=True)[:, 0]
    for panel, (label, runs) in zip(panels, groups.items(), strict=True):
        curves: dict[tuple[int, int], list[Curve]] = {}
        for run in runs:
            steps, values = measure(run, "cosine_between")
            for i, j in np.argwhere(np.isfinite(values).any(axis=0)):
                curves.setdefault((int(i), int(j)), []).append(Curve(steps, values[:, i, j]))
        if not curves:
            raise Missing(f"no two layers of {label} were compared")
        for (i, j), pair in sorted(curves.items()):
            shade = matplotlib.colormaps["viridis"](i / max(1, max(first for first, _ in curves)))
            _draw(panel, f"layers {i + 1}–{j + 1}", pair, color=shade, linestyle=DASHES[min(j - i, len(DASHES)) - 1])
        panel.set_title(_with_seeds(label, runs), fontsize=10)
        panel.set_ylabel("cosine similarity")
        panel.set_ylim(0, 1)
        panel.legend(ncols=-(-len(curves) // 15), fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    panels[-1].set_xlabel("step")
    return figure


PICTURES: dict[str, Callable[[Groups], Figure]] = {
    one.__name__: one for one in (train_loss, val_loss, attention_metrics, layer_similarity)
}


def band(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps that all curves have, mean there, and the standard error over the curves: NaN of a single one."""
    steps = curves[0].steps
    for one in curves[1:]:
        steps = np.intersect1d(steps, one.steps)
    if not len(steps):
        raise Missing("the seeds have no step in common")
    values = np.stack([np.asarray(one.values, float)[np.searchsorted(one.steps, steps)] for one in curves])
    together = -(-len(steps) // POINTS)
    starts = np.arange(0, len(steps), together)
    sizes = np.diff([*starts, len(steps)])
    values = np.add.reduceat(values, starts, axis=1) / sizes
    middle = np.add.reduceat(steps.astype(float), starts) / sizes
    count = len(curves)
    error = values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(len(starts), np.nan)
    return middle, values.mean(axis=0), error


def _losses(groups: Groups, name: str, words: str) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    for label, runs in groups.items():
        _draw(panel, _with_seeds(label, runs), [scalar_curve(run, name, "it was never logged") for run in runs])
    panel.set_xlabel("step")
    panel.set_ylabel(words)
    panel.legend()
    return figure


def _with_seeds(label: str, runs: Sequence[Run]) -> str:
    return f"{label} ({len(runs)} seed{'s' * (len(runs) != 1)})"


def _draw(panel: Axes, label: str, curves: Sequence[Curve], **look: Any) -> None:
    steps, mean, error = band(curves)
    (line,) = panel.plot(steps, mean, label=f" {label}", linewidth=1.5, **look)   # one that begins with _ is hidden
    if len(curves) > 1:
        panel.fill_between(steps, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)

"""Plots of a comparison of focus paradigms, one file per plot and number of segments m.

A focus model distributes its focus, weights that sum to 1, over the m segments of an example. One
segment, the foreground, shows the class. A paradigm is the loss that trains focus and classifier
together; a hybrid paradigm switches from one loss to another during training. SAIF is the share of
examples with high focus on the foreground and high probability of the true class
(tasks/focus/metrics.py). A run is the folder of one training; a result is its test result. The
results of a paradigm differ only by their seed.
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from neural.findings.focus_results import (
    FocusGroups,
    FocusResult,
    estimate_score,
    list_segment_counts,
)
from neural.findings.run_loading import MissingDataError, load_scalar_curve
from neural.report.plots import PLOT_STYLE, average_curves, save_figure
from neural.runs.run import Run
from neural.stats.correlation import Curve

CURVE_LABELS = {
    "valid/accuracy": "accuracy",
    "valid/focus_accuracy": "focus accuracy",
    "valid/saif": "SAIF",
}
"""Axis labels by name of a scalar."""
CELL_STYLES = {
    "cell_tt": ("focus right, prediction right", "#2a7f4f"),
    "cell_tf": ("focus right, prediction wrong", "#9ccfb0"),
    "cell_ft": ("focus wrong, prediction right", "#d9853b"),
    "cell_ff": ("focus wrong, prediction wrong", "#8a8a8a"),
}
"""(label, color) by score: shares of examples by focus and prediction, right (t) or wrong (f)."""
PLAIN_NUMBER_FORMAT = FuncFormatter(lambda value, _: f"{value:g}")
"""Plain numbers instead of powers of ten."""
HEAT_MAPS_PER_ROW = 4
MAX_TILES = 100
"""Examples with more segments are drawn with TILES_PER_ROW of them; a tile is a segment's image."""
TILES_PER_ROW = 20
MIN_TILE_BRIGHTNESS = 0.25
"""Brightness of a tile without focus; a tile with all the focus has 1."""
MIN_LABELLED_WEIGHT = 0.05
"""Tiles with more focus than this are labelled with it."""

ResultsByParadigm = dict[str, list[FocusResult]]
"""Results by paradigm, one per seed, all with the same number of segments."""


def draw_focus_plots(groups: FocusGroups, runs: Path, folder: Path) -> list[Path]:
    """Draw all plots that the results have data for as PNG files into `folder`.

    `groups` are results by (paradigm, m); `runs` is the folder that contains their runs. The name
    of a plot function is also the file name and the title.
    """
    files = []
    for m in list_segment_counts(groups):
        by_paradigm = {name: group for (name, size), group in groups.items() if size == m}
        for draw in (curves, heat_maps, cells, mosaics, costs):
            with matplotlib.rc_context(PLOT_STYLE):
                figure = draw(by_paradigm, runs)
                if figure is not None:
                    figure.suptitle(f"{draw.__name__.replace('_', ' ')}, m = {m}")
                    files.append(save_figure(figure, folder / f"{draw.__name__}_{m}.png"))
    return files


def curves(results: ResultsByParadigm, runs: Path) -> Figure | None:
    """Accuracy, focus accuracy and SAIF on validation data; bands are standard errors over seeds.

    A dotted line marks the switch of a hybrid paradigm, averaged over its seeds.
    """
    figure = Figure(figsize=(7.5, 9), layout="constrained")
    panels = figure.subplots(len(CURVE_LABELS), 1, sharex=True)
    for paradigm_index, (name, group) in enumerate(results.items()):
        open_runs = [Run.open(runs / result.run) for result in group]
        try:
            for panel, (scalar, ylabel) in zip(panels, CURVE_LABELS.items(), strict=True):
                seed_curves = [
                    load_scalar_curve(run, scalar, "the foreground is unknown") for run in open_runs
                ]
                _plot_curve(panel, name, seed_curves, paradigm_index)
                panel.set_ylabel(ylabel)
                panel.set_ylim(-0.02, 1.02)
            _mark_switches(panels, open_runs, paradigm_index)
        except MissingDataError:
            return None
        finally:
            for run in open_runs:
                run.close()
    panels[-1].set_xlabel("step")
    panels[0].legend(fontsize=8, ncols=2, loc="lower right")
    return figure


def heat_maps(results: ResultsByParadigm, runs: Path) -> Figure | None:
    """Histogram of focus on the foreground and probability of the true class over [0, 1]²."""
    if not any(result.heat_map.any() for group in results.values() for result in group):
        return None
    rows = math.ceil(len(results) / HEAT_MAPS_PER_ROW)
    figure = Figure(figsize=(2.6 * HEAT_MAPS_PER_ROW, 2.7 * rows + 0.4), layout="constrained")
    panels = figure.subplots(
        rows, HEAT_MAPS_PER_ROW, squeeze=False, sharex=True, sharey=True
    ).ravel()
    image = None
    for panel, (name, group) in zip(panels, results.items(), strict=False):
        shares = np.mean([result.heat_map for result in group], axis=0)
        image = panel.imshow(
            np.where(shares > 0, shares, np.nan),
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap="viridis",
            norm="log",
            vmin=1e-4,
            vmax=1.0,
        )
        panel.set_title(name, fontsize=9)
        panel.grid(visible=False)
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    figure.supxlabel("probability of the true class", fontsize=10)
    figure.supylabel("focus on the foreground", fontsize=10)
    if image is not None:
        figure.colorbar(
            image,
            ax=panels.tolist(),
            label="share of examples",
            shrink=0.6,
            format=PLAIN_NUMBER_FORMAT,
        )
    return figure


def cells(results: ResultsByParadigm, runs: Path) -> Figure | None:
    """Shares of examples with right or wrong focus and right or wrong prediction."""
    if not all("cell_tt" in result.scores for group in results.values() for result in group):
        return None
    figure = Figure(figsize=(8, 0.42 * len(results) + 1.6), layout="constrained")
    panel = figure.subplots()
    names, left = list(results), np.zeros(len(results))
    for key, (label, color) in CELL_STYLES.items():
        shares = np.array([estimate_score(group, key).value for group in results.values()])
        panel.barh(names, shares, left=left, color=color, label=label)
        left += shares
    panel.invert_yaxis()
    panel.set_xlim(0, 1)
    panel.set_xlabel("share of test examples")
    panel.grid(visible=False)
    panel.legend(ncols=2, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def mosaics(results: ResultsByParadigm, runs: Path) -> Figure | None:
    """One test example per paradigm: brighter tiles have more focus; a frame marks the foreground.

    Of more than `MAX_TILES` segments only the foreground and those with the most focus are drawn.
    None if segments are not square images or the foreground is unknown.
    """
    first_seed = {name: group[0] for name, group in results.items()}
    any_result = next(iter(first_seed.values()))
    tile = _to_square_image(any_result.examples["x"][0, 0])
    if tile is None or "foreground" not in any_result.examples:
        return None
    tiles = any_result.segments if any_result.segments <= MAX_TILES else TILES_PER_ROW
    columns = min(tiles, TILES_PER_ROW)
    figure = Figure(
        figsize=(0.42 * columns + 2.2, 0.62 * len(first_seed) * math.ceil(tiles / columns) + 0.8),
        layout="constrained",
    )
    panels = figure.subplots(len(first_seed), 1, squeeze=False)[:, 0]
    for panel, (name, result) in zip(panels, first_seed.items(), strict=True):
        _draw_mosaic(panel, result, columns)
        label = result.classes[int(result.examples["label"][0])]
        predicted = result.classes[int(result.examples["predicted"][0])]
        panel.set_ylabel(
            f"{name}\npredicts {predicted}, is {label}",
            rotation=0,
            ha="right",
            va="center",
            fontsize=7,
        )
    return figure


def costs(results: ResultsByParadigm, runs: Path) -> Figure:
    """SAIF against classifier calls per example and training step.

    Accuracy instead of SAIF if the foreground is unknown.
    """
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    has_saif = all("saif" in result.scores for group in results.values() for result in group)
    for paradigm_index, (name, group) in enumerate(results.items()):
        score, calls = (
            estimate_score(group, "saif" if has_saif else "accuracy"),
            estimate_score(group, "classifier_calls"),
        )
        error = (
            None if np.isnan(score.low) else [[score.value - score.low], [score.high - score.value]]
        )
        panel.errorbar(
            calls.value,
            score.value,
            clip_error_bars(error),
            fmt="o",
            color=_pick_color(paradigm_index),
            label=name,
            capsize=3,
        )
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(PLAIN_NUMBER_FORMAT)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("classifier calls per example and step")
    panel.set_ylabel("SAIF" if has_saif else "accuracy")
    panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def clip_error_bars(error: list[list[float]] | None) -> np.ndarray | None:
    """Lengths of error bars, clipped at 0: by rounding, a mean may lie outside of its interval."""
    return None if error is None else np.maximum(error, 0)


def _plot_curve(panel: Axes, name: str, curves: list[Curve], paradigm_index: int) -> None:
    """Mean of the curves, one per seed, and a band of its standard error."""
    steps, mean, error = average_curves(curves)
    panel.plot(
        steps,
        mean,
        label=f" {name}",  # a space, because matplotlib hides labels that start with _
        color=_pick_color(paradigm_index),
        linestyle=_pick_line_style(paradigm_index),
        linewidth=1.4,
    )
    if len(curves) > 1:
        panel.fill_between(
            steps,
            mean - error,
            mean + error,
            color=_pick_color(paradigm_index),
            alpha=0.2,
            linewidth=0,
        )


def _mark_switches(panels: np.ndarray, runs: list[Run], paradigm_index: int) -> None:
    """Draw a dotted line at the mean step at which a hybrid paradigm switched."""
    # an event is (step, kind, text, time)
    steps = [step for run in runs for step, kind, _, _ in run.events() if kind == "switch"]
    for panel in panels if steps else ():
        panel.axvline(
            float(np.mean(steps)), color=_pick_color(paradigm_index), linestyle=":", linewidth=1.2
        )


def _draw_mosaic(panel: Axes, result: FocusResult, columns: int) -> None:
    """Draw the first stored example: brightness is focus, and a frame marks the foreground."""
    x, focus, foreground = (result.examples[name][0] for name in ("x", "focus", "foreground"))
    if len(focus) > MAX_TILES:
        # `foreground` is 0 or 1, so the foreground comes first, then by focus
        drawn = np.argsort(-(focus + foreground), kind="stable")[:TILES_PER_ROW]
        x, focus, foreground = x[drawn], focus[drawn], foreground[drawn]
    tiles = [_to_square_image(segment) for segment in x]
    size = next(tile.shape[0] for tile in tiles if tile is not None)
    rows, gap = math.ceil(len(tiles) / columns), 2  # gap between tiles, in pixels
    canvas = np.full((rows * (size + gap), columns * (size + gap)), np.nan)
    for index, (tile, weight) in enumerate(zip(tiles, focus, strict=True)):
        assert tile is not None
        row, column = divmod(index, columns)
        top, left = row * (size + gap) + 1, column * (size + gap) + 1
        peak = max(float(tile.max()), 1e-9)
        canvas[top : top + size, left : left + size] = (
            tile / peak * (MIN_TILE_BRIGHTNESS + (1 - MIN_TILE_BRIGHTNESS) * weight)
        )
        if foreground[index]:
            panel.add_patch(
                Rectangle((left - 1, top - 1), size + 1, size + 1, fill=False, color="#d9853b")
            )
        if weight > MIN_LABELLED_WEIGHT:
            panel.text(
                left + size / 2, top - 1.2, f"{weight:.2f}", ha="center", va="bottom", fontsize=5
            )
    panel.imshow(canvas, cmap="magma", vmin=0, vmax=1)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.grid(visible=False)
    for side in panel.spines.values():
        side.set_visible(False)


def _to_square_image(segment: np.ndarray) -> np.ndarray | None:
    """A segment, (side, side, channels) or flat, as a square grey image; None if not square."""
    if segment.ndim == 3:
        return segment.mean(axis=-1) if segment.shape[0] == segment.shape[1] else None
    side = round(segment.size**0.5)
    return segment.reshape(side, side) if side > 2 and side * side == segment.size else None


def _pick_color(index: int) -> str:
    return f"C{index % 10}"


def _pick_line_style(index: int) -> str:
    """Dashed after ten paradigms, when the colors repeat."""
    return ("-", "--")[index // 10 % 2]

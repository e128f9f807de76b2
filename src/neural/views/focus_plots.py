"""Pictures of a comparison of paradigms, a file for each m: curves, heat maps, cells, mosaics, and what focus costs."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from neural.tracking.run import Run
from neural.views.correlation import Curve
from neural.views.focus_results import Groups, Result, estimate, sizes
from neural.views.plots import STYLE, band, save
from neural.views.reading import Missing, scalar_curve

CURVES = {"valid/accuracy": "accuracy", "valid/focus_accuracy": "focus accuracy", "valid/saif": "SAIF"}
CELLS = {
    "cell_tt": ("focus right, prediction right", "#2a7f4f"), "cell_tf": ("focus right, prediction wrong", "#9ccfb0"),
    "cell_ft": ("focus wrong, prediction right", "#d9853b"), "cell_ff": ("focus wrong, prediction wrong", "#8a8a8a"),
}  # fmt: skip
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
"""Powers of ten as plain numbers."""
ACROSS = 4
"""Heat maps in a row."""
TILES, LINE = 100, 20
"""Of a mosaic: the most that is drawn, and in a row."""

Chosen = dict[str, list[Result]]
"""The results of one m by paradigm."""


def plots(groups: Groups, runs: Path, folder: Path) -> list[Path]:
    """Every picture that the results have the numbers for, as PNG in `folder`; the runs lie in `runs`."""
    made = []
    for m in sizes(groups):
        chosen = {name: group for (name, size), group in groups.items() if size == m}
        for draw in (curves, heat_maps, cells, mosaics, costs):
            with matplotlib.rc_context(STYLE):
                figure = draw(chosen, runs)
                if figure is not None:
                    figure.suptitle(f"{draw.__name__.replace('_', ' ')}, m = {m}")
                    made.append(save(figure, folder / f"{draw.__name__}_{m}.png"))
    return made


def curves(chosen: Chosen, runs: Path) -> Figure | None:
    """Accuracy, focus accuracy and SAIF on the validation examples; bands are the standard error over seeds.

    A short line marks where a hybrid switched, on average over its seeds.
    """
    figure = Figure(figsize=(7.5, 9), layout="constrained")
    panels = figure.subplots(len(CURVES), 1, sharex=True)
    for number, (name, group) in enumerate(chosen.items()):
        opened = [Run.open(runs / one.run) for one in group]
        try:
            for panel, (scalar, words) in zip(panels, CURVES.items(), strict=True):
                seeds = [scalar_curve(run, scalar, "the foreground is not known") for run in opened]
                _curve(panel, name, seeds, number)
                panel.set_ylabel(words)
                panel.set_ylim(-0.02, 1.02)
            _switches(panels, opened, number)
        except Missing:
            return None
        finally:
            for run in opened:
                run.close()
    panels[-1].set_xlabel("step")
    panels[0].legend(fontsize=8, ncols=2, loc="lower right")
    return figure


def heat_maps(chosen: Chosen, runs: Path) -> Figure | None:
    """Focus on the foreground against probability of the true class, always over [0, 1]²; the mean over seeds."""
    if not any(one.heat.any() for group in chosen.values() for one in group):
        return None
    rows = -(-len(chosen) // ACROSS)
    figure = Figure(figsize=(2.6 * ACROSS, 2.7 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, ACROSS, squeeze=False, sharex=True, sharey=True).ravel()
    image = None
    for panel, (name, group) in zip(panels, chosen.items(), strict=False):
        shares = np.mean([one.heat for one in group], axis=0)
        image = panel.imshow(
            np.where(shares > 0, shares, np.nan), origin="lower", extent=(0, 1, 0, 1), cmap="viridis", norm="log",
            vmin=1e-4, vmax=1.0,
        )  # fmt: skip
        panel.set_title(name, fontsize=9)
        panel.grid(visible=False)
    for panel in panels[len(chosen) :]:
        panel.set_visible(False)
    figure.supxlabel("probability of the true class", fontsize=10)
    figure.supylabel("focus on the foreground", fontsize=10)
    if image is not None:
        figure.colorbar(image, ax=panels.tolist(), label="share of examples", shrink=0.6, format=PLAIN)
    return figure


def cells(chosen: Chosen, runs: Path) -> Figure | None:
    """How often focus and prediction are right or wrong together."""
    if not all("cell_tt" in one.scores for group in chosen.values() for one in group):
        return None
    figure = Figure(figsize=(8, 0.42 * len(chosen) + 1.6), layout="constrained")
    panel = figure.subplots()
    names, left = list(chosen), np.zeros(len(chosen))
    for key, (words, colour) in CELLS.items():
        shares = np.array([estimate(group, key).value for group in chosen.values()])
        panel.barh(names, shares, left=left, color=colour, label=words)
        left += shares
    panel.invert_yaxis()
    panel.set_xlim(0, 1)
    panel.set_xlabel("share of test examples")
    panel.grid(visible=False)
    panel.legend(ncols=2, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def mosaics(chosen: Chosen, runs: Path) -> Figure | None:
    """One test example by every paradigm: brighter is more focus; a frame marks the segment that decides.

    Of very many segments only those with the most focus are drawn, and the one that decides.
    """
    first = {name: group[0] for name, group in chosen.items()}
    any_of = next(iter(first.values()))
    tile = _picture(any_of.shown["x"][0, 0])
    if tile is None or "foreground" not in any_of.shown:
        return None
    m = any_of.segments if any_of.segments <= TILES else LINE
    across = min(m, LINE)
    figure = Figure(figsize=(0.42 * across + 2.2, 0.62 * len(first) * -(-m // across) + 0.8), layout="constrained")
    panels = figure.subplots(len(first), 1, squeeze=False)[:, 0]
    for panel, (name, one) in zip(panels, first.items(), strict=True):
        _mosaic(panel, one, across)
        right = one.classes[int(one.shown["label"][0])]
        said = one.classes[int(one.shown["predicted"][0])]
        panel.set_ylabel(f"{name}\nsays {said}, is {right}", rotation=0, ha="right", va="center", fontsize=7)
    return figure


def costs(chosen: Chosen, runs: Path) -> Figure:
    """SAIF (accuracy, where no foreground is known) against calls of the classifier per example and step."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    known = all("saif" in one.scores for group in chosen.values() for one in group)
    for number, (name, group) in enumerate(chosen.items()):
        score, calls = estimate(group, "saif" if known else "accuracy"), estimate(group, "calls")
        error = None if np.isnan(score.low) else [[score.value - score.low], [score.high - score.value]]
        panel.errorbar(calls.value, score.value, yerror(error), fmt="o", color=_colour(number), label=name, capsize=3)
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(PLAIN)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("calls of the classifier per example and step")
    panel.set_ylabel("SAIF" if known else "accuracy")
    panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def yerror(error: list[list[float]] | None) -> np.ndarray | None:
    """Below and above, never below 0: a mean may lie outside of a resampled interval by rounding."""
    return None if error is None else np.maximum(error, 0)


def _curve(panel: Axes, name: str, seeds: list[Curve], number: int) -> None:
    steps, mean, error = band(seeds)
    panel.plot(steps, mean, label=f" {name}", color=_colour(number), linestyle=_dash(number), linewidth=1.4)
    if len(seeds) > 1:
        panel.fill_between(steps, mean - error, mean + error, color=_colour(number), alpha=0.2, linewidth=0)


def _switches(panels: np.ndarray, runs: list[Run], number: int) -> None:
    steps = [step for run in runs for step, kind, _, _ in run.events() if kind == "switch"]
    for panel in panels if steps else ():
        panel.axvline(float(np.mean(steps)), color=_colour(number), linestyle=":", linewidth=1.2)


def _mosaic(panel: Axes, one: Result, across: int) -> None:
    x, focus, front = (one.shown[name][0] for name in ("x", "focus", "foreground"))
    if len(focus) > TILES:
        most = np.argsort(-(focus + front), kind="stable")[:LINE]
        x, focus, front = x[most], focus[most], front[most]
    tiles = [_picture(segment) for segment in x]
    size = next(tile.shape[0] for tile in tiles if tile is not None)
    rows, gap = -(-len(tiles) // across), 2
    canvas = np.full((rows * (size + gap), across * (size + gap)), np.nan)
    for number, (tile, weight) in enumerate(zip(tiles, focus, strict=True)):
        assert tile is not None
        row, column = divmod(number, across)
        at = row * (size + gap) + 1, column * (size + gap) + 1
        reach = max(float(tile.max()), 1e-9)
        canvas[at[0] : at[0] + size, at[1] : at[1] + size] = tile / reach * (0.25 + 0.75 * weight)
        if front[number]:
            panel.add_patch(Rectangle((at[1] - 1, at[0] - 1), size + 1, size + 1, fill=False, color="#d9853b"))
        if weight > 0.05:
            panel.text(at[1] + size / 2, at[0] - 1.2, f"{weight:.2f}", ha="center", va="bottom", fontsize=5)
    panel.imshow(canvas, cmap="magma", vmin=0, vmax=1)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.grid(visible=False)
    for side in panel.spines.values():
        side.set_visible(False)


def _picture(segment: np.ndarray) -> np.ndarray | None:
    """A segment as a square grey picture, where it is one."""
    if segment.ndim == 3:
        return segment.mean(axis=-1) if segment.shape[0] == segment.shape[1] else None
    side = round(segment.size**0.5)
    return segment.reshape(side, side) if side > 2 and side * side == segment.size else None


def _colour(number: int) -> str:
    return f"C{number % 10}"


def _dash(number: int) -> str:
    return ("-", "--")[number // 10 % 2]



"""What the theory of focus models predicts, drawn: the same setting gives the same bytes.

    theory_held     loss and incentive against a focus held at α, after three times
    theory_motion   focus, loss and incentive in time; dots are gradient descent on the real linear model
    theory_late     1 − α in time, both logarithmic, with the formulas for large times
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.tasks.focusing.theory import late
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.linear import Measured
from neural.tasks.focusing.theory.overview import Overview, Schedule
from neural.views.plots import STYLE, save

LOOKS = {
    "soft": ("#0072b2", "-"), "hard": ("#d55e00", "-"), "lvml": ("#009e73", "-"), "soft → hard": ("#0072b2", "--"),
    "lvml → hard": ("#009e73", "--"), "steepest": ("#7f7f7f", ":"),
}  # fmt: skip
"""The second stage has the dashes, the first the colour."""
DOTS = 12


def theory_plots(found: Overview, folder: Path, *, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Draws every picture; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for name, draw in PICTURES.items():
        with matplotlib.rc_context(STYLE):
            figure = draw(found)
            setting = found.setting
            figure.suptitle(f"C = {setting.classes}, m = {setting.segments}, r = {setting.rate:g}")
            made += [save(figure, folder / f"{name}.{one}") for one in formats]
    return made


def theory_held(found: Overview) -> Figure:
    """Loss above, incentive below; a column for each time."""
    held = found.held
    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for column, time in enumerate(held.times):
        for row, values in enumerate((held.loss, held.incentive)):
            panel: Axes = panels[row, column]
            for name, all_times in values.items():
                colour, line = LOOKS[name]
                panel.plot(held.alphas, all_times[column], line, color=colour, label=name, marker=".")
                if row == 0 and name != "soft":   # soft's best loss is 0 everywhere
                    panel.plot(held.alphas, held.best[name], ":", color=colour, label=f"{name}, trained for ever")
        panels[0, column].set_title(f"after t = {time:g}", fontsize=10)
        panels[1, column].set_xlabel("focus held at α")
    for row in panels:   # after all columns: they share their height
        row[0].set_ylim(bottom=0)
    panels[0, 0].set_ylabel("loss (nats)")
    panels[1, 0].set_ylabel("incentive −∂loss/∂α")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), ncols=5, fontsize=9, loc="outside lower center")
    return figure


def theory_motion(found: Overview) -> Figure:
    """Three panels over one another, time logarithmic; switches are marked on each curve."""
    figure = Figure(figsize=(8, 10), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for one in found.schedules:
        for panel, values in zip(panels, (one.path.focus, one.path.loss, one.path.incentive), strict=True):
            _curve(panel, one, values)
    for one in found.schedules:
        if one.measured is not None:
            places = _dots(one.measured, found.until)
            look = {"color": LOOKS[one.name][0], "markersize": 4, "linestyle": "", "markerfacecolor": "none"}
            marker = "o" if len(one.switches) == 0 else "s"
            panels[0].plot(one.measured.time[places], one.measured.focus[places], marker, **look)
            panels[1].plot(one.measured.time[places], one.measured.loss[places], marker, **look)
    panels[2].set_ylim(0, 1.2 * max(one.path.incentive.max() for one in found.schedules if one.name != "steepest"))
    for panel, words in zip(panels, ("focus α", "loss (nats)", "incentive −∂loss/∂α"), strict=True):
        _logarithmic(panel)
        panel.set_ylabel(words)
        panel.set_xlim(found.until / 1000, found.until)
    panels[0].legend(fontsize=9)
    panels[0].set_title("lines: theory; circles, squares: gradient descent; diamonds: switch", fontsize=9)
    panels[2].set_xlabel("time (steps × learning rate)")
    return figure


def theory_late(found: Overview) -> Figure:
    """What is still missing, and the straight lines that the hard and the marginal loss tend to."""
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    panel = figure.subplots()
    for one in found.schedules:
        _curve(panel, one, 1 - one.path.focus)
    for one in found.finishes:
        begin = min(schedule.times[1] for schedule in found.schedules if schedule.name == one.name)
        if begin < found.far:
            times = np.geomspace(begin, found.far, 50)
            left = late.leading(found.setting, law(one.name, found.setting.classes), times)
            panel.plot(times, left, color="black", linewidth=0.7, linestyle=(0, (1, 2)))
            words = f"{one.formula}, slope {one.slope_exact:.2f}".replace("-", "−")
            panel.annotate(words, (times[-1], float(left[-1])), xytext=(4, 0), textcoords="offset points",
                           fontsize=8, va="center")  # fmt: skip
    for one in found.schedules:
        if one.measured is not None and not one.switches:
            places = _dots(one.measured, found.far)
            panel.plot(one.measured.time[places], 1 - one.measured.focus[places], "o", color=LOOKS[one.name][0],
                       markersize=4, linestyle="", markerfacecolor="none")  # fmt: skip
    panel.set_title("lines: theory; dots: its late formula, with the slope; circles: gradient descent", fontsize=9)
    _logarithmic(panel, both=True)
    panel.set_xlim(found.until / 1000, found.far)
    panel.set_xlabel("time (steps × learning rate)")
    panel.set_ylabel("1 − α")
    panel.legend(fontsize=9, loc="lower left")
    return figure


PICTURES: dict[str, Callable[[Overview], Figure]] = {
    one.__name__: one for one in (theory_held, theory_motion, theory_late)
}


def _logarithmic(panel: Axes, *, both: bool = False) -> None:
    """With numbers that are written out: powers would need the mathematical text that is turned off."""
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    if both:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")


def _dots(measured: Measured, until: float) -> np.ndarray:
    """Some steps, spread over the time and over the rise."""
    times = np.searchsorted(measured.time, np.geomspace(until / 1000, until, DOTS))
    rise = np.searchsorted(np.maximum.accumulate(measured.focus), np.linspace(0, 1, DOTS)[1:-1])
    return np.unique(np.concatenate([times, rise]).clip(0, len(measured.time) - 1))


def _curve(panel: Axes, one: Schedule, values: np.ndarray) -> None:
    colour, line = LOOKS[one.name]
    panel.plot(one.path.time, values, linestyle=line, color=colour, label=one.name, linewidth=1.5)
    for switch in one.switches:
        if one.path.time[0] < switch < one.path.time[-1]:
            there = float(np.interp(switch, one.path.time, values))
            panel.plot([switch], [there], "D", color=colour, markersize=5)

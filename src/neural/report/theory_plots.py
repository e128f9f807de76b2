"""Plots of the theory of focus models; the same setting gives the same bytes.

A focus model distributes its focus over m segments; α is the focus on the foreground, the segment
that shows the class. A paradigm is a loss that trains focus and classifier together: soft, hard or
lvml. A schedule is one paradigm, or two with a switch between them; `steepest` is a loss whose
parameter follows the time so that α rises fastest. The incentive is −∂loss/∂α. Time is steps ×
learning rate. The theory is that of a linear model (tasks/focus/theory/overview.py), and dots in
the plots are gradient descent on the same model.

    theory_held     loss and incentive against an α that is held fixed, after three training times
    theory_motion   focus, loss and incentive over time
    theory_late     1 − α over time, both logarithmic, with the asymptotic formulas
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.report.plots import PLOT_STYLE, save_figure
from neural.tasks.focus.theory import asymptotics
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.linear_model import DescentResult
from neural.tasks.focus.theory.overview import ScheduleResult, TheoryOverview

SCHEDULE_STYLES = {
    "soft": ("#0072b2", "-"),
    "hard": ("#d55e00", "-"),
    "lvml": ("#009e73", "-"),
    "soft → hard": ("#0072b2", "--"),
    "lvml → hard": ("#009e73", "--"),
    "steepest": ("#7f7f7f", ":"),
}
"""Color and line style by schedule. The color is that of the first paradigm; dashes mean that a
second one follows."""
MAX_DOTS = 12
"""Steps of gradient descent drawn as dots at even distances of log time.

Two fewer are drawn at even distances of the focus.
"""
LOG_TIME_RATIO = 1000
"""Time axes start at `overview.until` divided by this."""


def draw_theory_plots(
    overview: TheoryOverview, folder: Path, *, formats: Sequence[str] = ("svg", "png")
) -> list[Path]:
    """Draw all plots; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, draw in THEORY_PLOTS_BY_NAME.items():
        with matplotlib.rc_context(PLOT_STYLE):
            figure = draw(overview)
            setting = overview.setting
            # C classes, m segments, r: rate at which the focus learns relative to the classifier
            figure.suptitle(f"C = {setting.classes}, m = {setting.segments}, r = {setting.rate:g}")
            files += [save_figure(figure, folder / f"{name}.{suffix}") for suffix in formats]
    return files


def theory_held(overview: TheoryOverview) -> Figure:
    """Loss above, incentive below, over the fixed α; one column per training time."""
    fixed_focus = overview.fixed_focus
    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for column, time in enumerate(fixed_focus.times):
        for row, values in enumerate((fixed_focus.loss, fixed_focus.incentive)):
            panel: Axes = panels[row, column]
            for name, curve_by_time in values.items():
                color, line = SCHEDULE_STYLES[name]
                panel.plot(
                    fixed_focus.alphas,
                    curve_by_time[column],
                    line,
                    color=color,
                    label=name,
                    marker=".",
                )
                if row == 0 and name != "soft":  # the optimal loss of soft is 0 for every α
                    panel.plot(
                        fixed_focus.alphas,
                        fixed_focus.optimal_loss[name],
                        ":",
                        color=color,
                        label=f"{name}, infinite training",
                    )
        panels[0, column].set_title(f"after t = {time:g}", fontsize=10)
        panels[1, column].set_xlabel("fixed focus α")
    for row in panels:  # after all columns are drawn, because a row shares its y axis
        row[0].set_ylim(bottom=0)
    panels[0, 0].set_ylabel("loss (nats)")
    panels[1, 0].set_ylabel("incentive −∂loss/∂α")
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), ncols=5, fontsize=9, loc="outside lower center"
    )
    return figure


def theory_motion(overview: TheoryOverview) -> Figure:
    """Focus, loss and incentive of every schedule over log time; diamonds mark switches."""
    figure = Figure(figsize=(8, 10), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for schedule in overview.schedules:
        trajectory = schedule.trajectory
        curves = (trajectory.focus, trajectory.loss, trajectory.incentive)
        for panel, values in zip(panels, curves, strict=True):
            _plot_schedule(panel, schedule, values)
    for schedule in overview.schedules:
        descent = schedule.descent
        if descent is not None:
            dots = _select_dots(descent, overview.until)
            style = {
                "color": SCHEDULE_STYLES[schedule.name][0],
                "markersize": 4,
                "linestyle": "",
                "markerfacecolor": "none",
            }
            marker = "o" if len(schedule.switches) == 0 else "s"
            panels[0].plot(descent.time[dots], descent.focus[dots], marker, **style)
            panels[1].plot(descent.time[dots], descent.loss[dots], marker, **style)
    # the incentive of `steepest` is so large at the start that it would hide the others
    max_incentive = max(
        schedule.trajectory.incentive.max()
        for schedule in overview.schedules
        if schedule.name != "steepest"
    )
    panels[2].set_ylim(0, 1.2 * max_incentive)
    for panel, ylabel in zip(
        panels, ("focus α", "loss (nats)", "incentive −∂loss/∂α"), strict=True
    ):
        _set_log_scale(panel)
        panel.set_ylabel(ylabel)
        panel.set_xlim(overview.until / LOG_TIME_RATIO, overview.until)
    panels[0].legend(fontsize=9)
    panels[0].set_title(
        "lines: theory; circles, squares: gradient descent; diamonds: switch", fontsize=9
    )
    panels[2].set_xlabel("time (steps × learning rate)")
    return figure


def theory_late(overview: TheoryOverview) -> Figure:
    """The gap 1 − α and its asymptotes: straight lines for hard and lvml, not for soft."""
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    panel = figure.subplots()
    for schedule in overview.schedules:
        _plot_schedule(panel, schedule, 1 - schedule.trajectory.focus)
    for late_rate in overview.late_rates:
        start = min(
            schedule.times[1] for schedule in overview.schedules if schedule.name == late_rate.name
        )
        if start < overview.last_time:
            times = np.geomspace(start, overview.last_time, 50)
            gap = asymptotics.first_order_gap(
                overview.setting, create_law(late_rate.name, overview.setting.classes), times
            )
            panel.plot(times, gap, color="black", linewidth=0.7, linestyle=(0, (1, 2)))
            text = f"{late_rate.formula}, slope {late_rate.slope_exact:.2f}".replace("-", "−")
            panel.annotate(
                text,
                (times[-1], float(gap[-1])),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=8,
                va="center",
            )
    for schedule in overview.schedules:
        if schedule.descent is not None and not schedule.switches:
            dots = _select_dots(schedule.descent, overview.last_time)
            panel.plot(
                schedule.descent.time[dots],
                1 - schedule.descent.focus[dots],
                "o",
                color=SCHEDULE_STYLES[schedule.name][0],
                markersize=4,
                linestyle="",
                markerfacecolor="none",
            )
    panel.set_title(
        "lines: theory; dots: asymptotic formula, with its slope; circles: gradient descent",
        fontsize=9,
    )
    _set_log_scale(panel, both=True)
    panel.set_xlim(overview.until / LOG_TIME_RATIO, overview.last_time)
    panel.set_xlabel("time (steps × learning rate)")
    panel.set_ylabel("1 − α")
    panel.legend(fontsize=9, loc="lower left")
    return figure


THEORY_PLOTS_BY_NAME: dict[str, Callable[[TheoryOverview], Figure]] = {
    draw.__name__: draw for draw in (theory_held, theory_motion, theory_late)
}


def _set_log_scale(panel: Axes, *, both: bool = False) -> None:
    """Set the x axis, or both axes, to a log scale with plain numbers.

    The default labels are powers in math text, which PLOT_STYLE turns off.
    """
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    if both:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")


def _select_dots(descent: DescentResult, until: float) -> np.ndarray:
    """Indices of steps to draw as dots, spread evenly over log time and over the focus."""
    times = np.searchsorted(descent.time, np.geomspace(until / LOG_TIME_RATIO, until, MAX_DOTS))
    rise = np.searchsorted(np.maximum.accumulate(descent.focus), np.linspace(0, 1, MAX_DOTS)[1:-1])
    return np.unique(np.concatenate([times, rise]).clip(0, len(descent.time) - 1))


def _plot_schedule(panel: Axes, schedule: ScheduleResult, values: np.ndarray) -> None:
    color, line = SCHEDULE_STYLES[schedule.name]
    panel.plot(
        schedule.trajectory.time,
        values,
        linestyle=line,
        color=color,
        label=schedule.name,
        linewidth=1.5,
    )
    for switch in schedule.switches:
        if schedule.trajectory.time[0] < switch < schedule.trajectory.time[-1]:
            value = float(np.interp(switch, schedule.trajectory.time, values))
            panel.plot([switch], [value], "D", color=color, markersize=5)

"""Importance of every head over training: heads × steps, with the loss above."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neural.findings.head_necessity import HeadIndex, HeadNecessity, load_necessity, load_roles
from neural.findings.head_roles import format_head
from neural.findings.run_loading import MissingDataError
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figure import (
    MUTED_COLOR,
    TEXT_COLOR,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_map,
    draw_text,
    measure_text,
)
from neural.report.paper_figures.roles import ROLE_BADGES

LOSS_HEIGHT, ROW_HEIGHT, TOP, GAP, STEP_LABELS, LEGEND = 46.0, 10.0, 4.0, 4.0, 10.0, 34.0
"""In points."""
LABEL_DISTANCE = 5.0
"""Smallest distance of the labels of two steps, in points."""
MIN_LABEL_HEIGHT = 7.0
"""Smallest vertical distance of two labels, in points."""
MAX_ROWS = 40
"""Of more heads, the most important ones are drawn."""
LINE_COLOR = "#0b66b0"


class Importance(FigureKind):
    """Change of the loss when a head is removed: a row per head, a column per checkpoint.

    Rows are ordered by the importance at the last step. A circle marks the step since which a head
    has its role, a hollow diamond the one since which it is necessary, a filled one that since
    which it has half of its importance.
    """

    needs_attention = False

    def draw(self, request: FigureRequest) -> Figure:
        """The picture of one run; FigureError where its importance was not measured."""
        if len(request.runs) > 1:
            raise FigureError(f"`importance` shows one run, not {len(request.runs)}")
        if request.metrics:
            raise FigureError("`importance` has no metric: leave it out")
        (run,) = request.runs
        try:
            necessity = load_necessity(run)
        except MissingDataError as error:
            raise FigureError(str(error)) from None
        record, roles = necessity.record, load_roles(run)
        heads = _rank_heads(necessity)
        shown = heads[:MAX_ROWS]
        labels = [
            f"{ROLE_BADGES[roles[head].name][0]}  {format_head(*head)}"
            if head in roles and roles[head].name in ROLE_BADGES
            else format_head(*head)
            for head in shown
        ]
        left = max(map(measure_text, [*labels, "loss 0.00"])) + 5
        width = request.width - left - 2
        rows_top = TOP + LOSS_HEIGHT + GAP
        rows_height = ROW_HEIGHT * len(shown)
        figure, axes = create_canvas(
            request.width, rows_top + rows_height + STEP_LABELS + GAP + LEGEND
        )
        columns = len(record.steps)
        x = left + (np.arange(columns) + 0.5) * width / columns
        _draw_loss(axes, necessity, x, left, width)
        values = np.stack([record.change[:, *head] for head in shown])
        limit = max(float(np.nanmax(np.abs(record.change))), 1e-9)
        draw_map(axes, values / limit, left, rows_top, width, rows_height)
        for row, (head, label) in enumerate(zip(shown, labels, strict=True)):
            y = rows_top + (row + 0.5) * ROW_HEIGHT
            draw_text(axes, left - 3, y, label, align="right")
            steps = (
                roles[head].onset if head in roles else None,
                necessity.find_onset_step(*head),
                necessity.find_half_step(*head),
            )
            role, onset, half = (_find_column(record.steps, step) for step in steps)
            marks = [(role, "o"), (onset if onset != half else None, "d"), (half, "D")]
            for column, mark in marks:
                if column is not None:
                    # in one cell, beside each other
                    is_shared = role is not None and role in (onset, half) and column == role
                    shift = 0.0 if not is_shared else -2.5 if mark == "o" else 2.5
                    _draw_mark(axes, x[column] + shift, y, mark)
        label_y = rows_top + rows_height + STEP_LABELS / 2 + 1
        _label_steps(axes, record.steps, x, label_y, right=left + width)
        _draw_legend(
            axes,
            left,
            rows_top + rows_height + STEP_LABELS + GAP,
            width,
            limit=limit,
            is_signed=bool(np.nanmin(values) < 0),
            unit=record.header.unit,
            omitted=len(heads) - len(shown),
        )
        return figure


def _rank_heads(necessity: HeadNecessity) -> list[HeadIndex]:
    """Measured heads, the most important one at the last step first."""
    last = necessity.record.change[-1]
    heads = [(int(layer), int(head)) for layer, head in np.argwhere(np.isfinite(last))]
    return sorted(heads, key=lambda head: -last[head])


def _find_column(steps: np.ndarray, step: int | None) -> int | None:
    """The first measured step at or after a step."""
    if step is None or step > steps[-1]:
        return None
    return int(np.searchsorted(steps, step))


def _draw_loss(
    axes: Axes, necessity: HeadNecessity, x: np.ndarray, left: float, width: float
) -> None:
    """The loss at the measured steps; dashed, the loss of guessing by frequencies."""
    record = necessity.record
    chance = record.chance_loss
    levels = [*record.loss[np.isfinite(record.loss)], *([] if chance is None else [chance])]
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0

    def scale(value: float | np.ndarray) -> np.ndarray:
        inner = LOSS_HEIGHT - 10
        return TOP + 5 + (high - np.asarray(value)) / span * inner

    if chance is not None:
        axes.plot(
            [left, left + width],
            [scale(chance)] * 2,
            color=MUTED_COLOR,
            linewidth=0.6,
            linestyle=(0, (4, 3)),
        )
        draw_text(
            axes, left + width, float(scale(chance)) + 5, "chance", align="right", color=MUTED_COLOR
        )
    axes.plot(x, scale(record.loss), color=LINE_COLOR, linewidth=1.0, marker="o", markersize=1.8)
    first, last = float(scale(record.loss[0])), float(scale(record.loss[-1]))
    draw_text(axes, left - 3, last, f"loss {record.loss[-1]:.2f}", align="right")
    if abs(first - last) > MIN_LABEL_HEIGHT:
        draw_text(axes, left - 3, first, f"loss {record.loss[0]:.2f}", align="right")


def _draw_mark(axes: Axes, x: float, y: float, mark: str) -> None:
    """A circle "o", a hollow diamond "d" or a filled one "D"."""
    is_filled = mark == "D"
    axes.plot(
        [x],
        [y],
        marker="o" if mark == "o" else "D",
        markersize=3.6 if mark == "o" else 3.2,
        markerfacecolor=TEXT_COLOR if is_filled else "#ffffff",
        markeredgecolor="#ffffff" if is_filled else TEXT_COLOR,
        markeredgewidth=0.6,
        linestyle="",
    )


def _label_steps(axes: Axes, steps: np.ndarray, x: np.ndarray, y: float, *, right: float) -> None:
    """Labels of the last step and of as many others as there is space for."""
    end = np.inf
    for column in range(len(steps) - 1, -1, -1):
        text = f"{steps[column]:,}"
        half = measure_text(text) / 2
        center = min(float(x[column]), right - half)
        if center + half + LABEL_DISTANCE <= end:
            draw_text(axes, center, y, text, align="center")
            end = center - half


def _draw_legend(
    axes: Axes,
    left: float,
    y: float,
    width: float,
    *,
    limit: float,
    is_signed: bool,
    unit: str,
    omitted: int,
) -> None:
    """Color bar of the changes, and the marks."""
    bar = min(70.0, width / 3)
    ramp = np.linspace(-1 if is_signed else 0, 1, 128)
    # the colors are by the square root of the change
    draw_map(axes, (np.sign(ramp) * ramp**2)[None], left, y, bar, 5)
    low = -limit if is_signed else 0.0
    for value, position in ((low, 0.0), (limit, bar)):
        text = f"{value:.2g}".replace("-", "−")
        draw_text(axes, left + position, y + 10, text, align="right" if position else "left")
    draw_text(axes, left + bar + 6, y + 2.5, f"change of the loss, {unit}", color=MUTED_COLOR)
    words = [("o", "role since"), ("d", "necessary since"), ("D", "half of it since")]
    x = left + 3
    for mark, text in words:
        _draw_mark(axes, x, y + 20, mark)
        draw_text(axes, x + 5, y + 20, text, color=MUTED_COLOR)
        x += measure_text(text) + 14
    if omitted > 0:
        draw_text(axes, left, y + 28, f"and {omitted} heads with less", color=MUTED_COLOR)

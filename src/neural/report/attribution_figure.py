"""Explanations of one prediction as a figure for print: tokens by methods, heads, curves.

draw_attribution(result.to_dict()).save("why.svg")

Above: a row per method, a column per token; a row is scaled to its largest score, and negative
scores are orange. The faithfulness number stands at the end of its row. Below: direct logit
attribution by head, and the deletion and insertion curves if they were measured. Cells are vector
shapes, and every number that a color shows can be read from the data of the page or from --json.
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from neural.report.attribution_scores import find_unit, format_gain, scale_scores
from neural.report.paper_figure import (
    BORDER_COLOR,
    FONT_SIZE,
    MASKED_COLOR,
    MUTED_COLOR,
    SIGNED_COLORS,
    SMALL_FONT_SIZE,
    STYLE,
    TEXT_COLOR,
    WEIGHT_COLORS,
    PaperFigure,
    create_canvas,
    draw_text,
    freeze_layout,
    measure_text,
)
from neural.report.token_text import format_token

WIDTH = 6.75 * 72
"""In points: two columns of a paper."""
ROW_HEIGHT, MIN_CELL, MARGIN = 11.0, 7.0, 6.0
NUMBER_WIDTH = 74.0
"""Width of the column of faithfulness numbers."""
HEAD_CELL, HEAD_WIDTH, CURVE_HEIGHT, CURVE_WIDTH = 14.0, 27.0, 96.0, 130.0
SCORE_COLORS = (SIGNED_COLORS[2], "#ffffff", *WEIGHT_COLORS[1:])
"""From −1 over 0 to 1: orange speaks against the answer, blue for it."""
SCORE_SCALE = LinearSegmentedColormap.from_list(
    "scores", list(zip((0, 0.5, 0.6, 0.7, 0.8, 0.9, 1), SCORE_COLORS, strict=True))
)
LINE_STYLES = ("-", "--", "-.", ":")


def draw_attribution(data: dict[str, Any]) -> PaperFigure:
    """The figure of what `AttributionResult.to_dict()` returns."""
    with matplotlib.rc_context(STYLE):
        figure = _draw(data)
        freeze_layout(figure)
    description = f"why {data['model']} answers {data['answer']['text']!r}"
    return PaperFigure(figure, kind="attribution", stem="attribution", description=description)


def _draw(data: dict[str, Any]) -> Figure:
    tokens = [format_token(token, 10) for token in data["tokens"]]
    methods = data["methods"]
    has_numbers = any(method["faithfulness"] for method in methods.values())
    left = MARGIN + max(measure_text(method["label"]) for method in methods.values()) + 5
    right = NUMBER_WIDTH if has_numbers else MARGIN
    cell = (WIDTH - left - right) / len(tokens)
    width = WIDTH
    if cell < MIN_CELL:  # a long input makes the figure wider: every token is readable
        cell = MIN_CELL
        width = left + right + cell * len(tokens)
    is_turned = max(map(measure_text, tokens)) > cell - 1
    top = 20.0 + (max(map(measure_text, tokens)) + 4 if is_turned else SMALL_FONT_SIZE + 4)
    strips_end = top + ROW_HEIGHT * len(methods)
    attribution = data["logit_attribution"]
    heads = np.array(attribution["heads"], dtype=float) if attribution else np.empty((0, 0))
    heads_top = strips_end + 12
    curves_top = heads_top + (20 + HEAD_CELL * len(heads) if heads.size else 0)
    width = max(width, 2 * MARGIN + 18 + HEAD_WIDTH * heads.shape[1])
    height = (curves_top + CURVE_HEIGHT + 40) if data["curves"] else curves_top + MARGIN
    figure, axes = create_canvas(width, height)
    answer = data["answer"]
    value = (
        f"{answer['logit']:.4f}"
        if answer["probability"] is None
        else f"with probability {answer['probability']:.3f}"
    )
    title = f"{data['model']}: {format_token(answer['text'])} {value}"
    draw_text(axes, MARGIN, 8, title, size=FONT_SIZE)
    if has_numbers:
        draw_text(
            axes, width - MARGIN, top - 5, f"faithfulness ({find_unit(answer)})", align="right"
        )
    for index, token in enumerate(tokens):
        draw_text(
            axes,
            left + (index + 0.5) * cell,
            top - 3,
            token,
            align="center",
            valign="bottom",
            rotation=90 if is_turned else 0,
        )
    for row, method in enumerate(methods.values()):
        y = top + row * ROW_HEIGHT
        draw_text(axes, left - 4, y + ROW_HEIGHT / 2, method["label"], align="right")
        scores = scale_scores(method["scores"])
        for index, score in enumerate(scores):
            _draw_cell(axes, score, left + index * cell, y + 1, cell, ROW_HEIGHT - 2)
        number = format_gain(method["faithfulness"])
        draw_text(axes, width - MARGIN, y + ROW_HEIGHT / 2, number, align="right")
    if heads.size:
        what = "difference of the logits" if data["against"] else "logit"
        title = f"direct part of the {what} ({attribution['logit']:.2f}) by head"
        _draw_heads(axes, heads, MARGIN, heads_top, title)
    if data["curves"]:
        _draw_curves(figure, data, width, height, curves_top)
    return figure


def _draw_cell(axes: Axes, score: float, x: float, y: float, width: float, height: float) -> None:
    """A rectangle in the color of a score from −1 to 1; grey if there is none."""
    color = MASKED_COLOR if np.isnan(score) else SCORE_SCALE((score + 1) / 2)
    cell = Rectangle((x, y), width, height, facecolor=color, edgecolor=BORDER_COLOR, linewidth=0.3)
    axes.add_patch(cell)


def _draw_heads(axes: Axes, heads: np.ndarray, x: float, y: float, title: str) -> None:
    """Direct attribution of each head as a grid with its numbers."""
    draw_text(axes, x, y, title.replace("-", "−"), size=FONT_SIZE)
    largest = max(float(np.nanmax(np.abs(heads), initial=0.0)), 1e-12)
    for layer, row in enumerate(heads):
        top = y + 8 + layer * HEAD_CELL
        draw_text(axes, x, top + HEAD_CELL / 2, f"L{layer}")
        for head, value in enumerate(row):
            left = x + 18 + head * HEAD_WIDTH
            _draw_cell(axes, value / largest, left, top, HEAD_WIDTH, HEAD_CELL)
            if np.isfinite(value):
                draw_text(
                    axes,
                    left + HEAD_WIDTH / 2,
                    top + HEAD_CELL / 2,
                    f"{value:.2f}".replace("-", "−"),
                    align="center",
                    color="#ffffff" if abs(value) / largest > 0.5 else TEXT_COLOR,
                )


def _draw_curves(
    figure: Figure, data: dict[str, Any], width: float, height: float, top: float
) -> None:
    """Deletion and insertion curves of all methods, beside each other, with their legend."""
    curves = data["curves"]
    for index, kind in enumerate(("deletion", "insertion")):
        x = 36 + index * (CURVE_WIDTH + 30)
        panel = figure.add_axes(
            (
                x / width,
                1 - (top + 12 + CURVE_HEIGHT) / height,
                CURVE_WIDTH / width,
                CURVE_HEIGHT / height,
            )
        )
        shares = np.array(curves["shares"])
        panel.plot(shares, curves["random"][kind], color=BORDER_COLOR, lw=2.2, label="random")
        for number, (name, lines) in enumerate(curves["methods"].items()):
            panel.plot(
                shares,
                lines[kind],
                LINE_STYLES[number % len(LINE_STYLES)],
                lw=0.9,
                color=matplotlib.colormaps["viridis"](0.9 * number / len(curves["methods"])),
                label=data["methods"][name]["label"],
            )
        panel.set_title(kind, fontsize=FONT_SIZE, loc="left", color=TEXT_COLOR)
        panel.set_xlabel("share of tokens")
        if index == 0:
            is_score = data["answer"]["probability"] is None
            label = data["answer"]["text"] if is_score else "log p of the answer"
            panel.set_ylabel(label, color=MUTED_COLOR)
        else:
            panel.legend(loc="upper left", bbox_to_anchor=(1.05, 1.05), handlelength=2.6)

"""The map of one head with its tokens."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from neural.report.paper_figure import (
    FONT_SIZE,
    SMALL_FONT_SIZE,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_color_bar,
    draw_map,
    draw_text,
    is_signed,
    measure_text,
)
from neural.report.token_text import format_token

LABEL_PITCH = SMALL_FONT_SIZE + 1
"""Smallest distance of two labels, in points; with less, only every second, third … is shown."""
TITLE_HEIGHT, AXIS_HEIGHT, BOTTOM = 13.0, 10.0, 24.0


class Head(FigureKind):
    """Map of one head with its tokens: rows are queries, columns are keys."""

    selects_head = True

    def draw(self, request: FigureRequest) -> Figure:
        """Labels are the tokens, or positions where there are none."""
        snapshot = request.snapshot
        assert snapshot is not None
        layer, head = snapshot.select_head(request.layer, request.head)
        weights = snapshot.maps[layer][head]
        queries, keys = weights.shape
        labels = snapshot.get_labels(layer)
        rows = _label_axis(labels.queries, queries)
        columns = _label_axis(labels.keys, keys)
        left = AXIS_HEIGHT + max(map(measure_text, rows)) + 4
        map_width = request.width - left - 2
        cell = map_width / keys
        map_height = cell * queries
        stride = math.ceil(LABEL_PITCH / cell)
        is_turned = max(map(measure_text, columns[::stride])) > cell * stride - 1
        top = TITLE_HEIGHT + AXIS_HEIGHT
        top += max(map(measure_text, columns)) + 4 if is_turned else SMALL_FONT_SIZE + 3
        bottom = 4.0 if is_signed(weights) else BOTTOM
        figure, axes = create_canvas(request.width, top + map_height + bottom)
        title = snapshot.describe_head(layer, head)
        title += "" if snapshot.step is None else f", step {snapshot.step:,}"
        draw_text(axes, left, 6, title, size=FONT_SIZE)
        draw_map(axes, weights, left, top, map_width, map_height)
        for index in range(0, queries, stride):
            draw_text(axes, left - 3, top + (index + 0.5) * cell, rows[index], align="right")
        for index in range(0, keys, stride):
            draw_text(
                axes,
                left + (index + 0.5) * cell,
                top - 3,
                columns[index],
                align="center",
                valign="bottom",
                rotation=90 if is_turned else 0,
            )
        middle = top + map_height / 2
        draw_text(axes, 5, middle, "queries", align="center", rotation=90)
        draw_text(axes, left + map_width / 2, TITLE_HEIGHT + 3, "keys", align="center")
        if not is_signed(weights):
            has_masked = bool(np.isnan(weights).any())
            bar_left = left + map_width / 2 - 40
            draw_color_bar(axes, bar_left, top + map_height + 6, 80, has_masked=has_masked)
        return figure


def _label_axis(labels: list[str] | None, count: int) -> list[str]:
    if labels is None:
        return [str(index) for index in range(count)]
    return [format_token(label) for label in labels[:count]]

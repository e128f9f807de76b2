"""Lines between the tokens of one head: from each query to the keys that it attends to."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from neural.capture.map_encoding import to_shares
from neural.findings.head_roles import format_head
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figure import (
    FONT_SIZE,
    WEIGHT_COLORS,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_text,
    measure_text,
)
from neural.report.token_text import format_token

ROW_HEIGHT = 8.5
MIN_SHOWN_WEIGHT = 0.02
"""Fainter lines could not be seen."""
MAX_TOKENS = 128
TITLE_HEIGHT, COLUMN_HEIGHT = 13.0, 11.0


class Lines(FigureKind):
    """Lines from queries, left, to keys, right; opacity and width are the weight."""

    selects_head = True

    def draw(self, request: FigureRequest) -> Figure:
        """One row per token; signed weights are drawn as shares of their row."""
        snapshot = request.snapshot
        assert snapshot is not None
        layer, head = snapshot.select_head(request.layer, request.head)
        weights = to_shares(np.nan_to_num(snapshot.maps[layer][head][None]))[0]
        if max(weights.shape) > MAX_TOKENS:
            raise FigureError(
                f"{format_head(layer, head)} has {max(weights.shape)} tokens; lines can be read "
                f"up to {MAX_TOKENS}: use `--kind head`"
            )
        queries, keys = weights.shape
        labels = snapshot.get_labels(layer)
        left_texts = _label_axis(labels.queries, queries)
        right_texts = _label_axis(labels.keys, keys)
        top = TITLE_HEIGHT + COLUMN_HEIGHT
        figure, axes = create_canvas(request.width, top + max(queries, keys) * ROW_HEIGHT + 4)
        title = snapshot.describe_head(layer, head)
        title += "" if snapshot.step is None else f", step {snapshot.step:,}"
        start = max(map(measure_text, [*left_texts, "queries"])) + 6
        end = request.width - max(map(measure_text, [*right_texts, "keys"])) - 6
        draw_text(axes, 2, 6, title, size=FONT_SIZE)
        draw_text(axes, start - 4, TITLE_HEIGHT + 4, "queries", align="right")
        draw_text(axes, end + 4, TITLE_HEIGHT + 4, "keys")
        row_y = top + (np.arange(max(queries, keys)) + 0.5) * ROW_HEIGHT
        for text, y in zip(left_texts, row_y, strict=False):
            draw_text(axes, start - 4, y, text, align="right")
        for text, y in zip(right_texts, row_y, strict=False):
            draw_text(axes, end + 4, y, text)
        # faint lines first, so that strong ones are on top; ties in reading order
        pairs = sorted(np.argwhere(weights >= MIN_SHOWN_WEIGHT), key=lambda pair: weights[*pair])
        shown = np.array([weights[*pair] for pair in pairs])
        axes.add_collection(
            LineCollection(
                [[(start, row_y[query]), (end, row_y[key])] for query, key in pairs],
                colors=[(*to_rgb(WEIGHT_COLORS[-2]), min(1.0, float(w))) for w in shown],
                linewidths=0.4 + 1.4 * shown,
                capstyle="round",
            )
        )
        return figure


def _label_axis(labels: list[str] | None, count: int) -> list[str]:
    if labels is None:
        return [str(index) for index in range(count)]
    return [format_token(label, 24) for label in labels[:count]]

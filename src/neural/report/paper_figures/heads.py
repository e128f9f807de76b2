"""All heads of all layers at one step, as a grid of maps."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from neural.report.paper_figure import (
    FONT_SIZE,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_color_bar,
    draw_map,
    draw_text,
    is_signed,
)

LEFT, TOP, BOTTOM, GAP = 16.0, 12.0, 24.0, 3.0
"""Margins for the names of layers, of heads and for the color bar; space between maps. In points."""


class Heads(FigureKind):
    """Maps of all heads at one step: a row per layer."""

    def draw(self, request: FigureRequest) -> Figure:
        """The maps of a layer have the same size; a long layer has small ones."""
        assert request.snapshot is not None
        maps = request.snapshot.maps
        max_heads = max(len(layer) for layer in maps)
        cell = (request.width - LEFT - GAP * max_heads) / max_heads
        heights = [cell * layer.shape[1] / layer.shape[2] for layer in maps]
        height = TOP + sum(heights) + GAP * len(maps) + BOTTOM
        figure, axes = create_canvas(request.width, height)
        for head in range(max_heads):
            draw_text(axes, LEFT + head * (cell + GAP) + cell / 2, 6, f"h{head}", align="center")
        y = TOP
        for layer, (layer_maps, map_height) in enumerate(zip(maps, heights, strict=True)):
            draw_text(
                axes, LEFT - 4, y + map_height / 2, f"L{layer}", size=FONT_SIZE, align="right"
            )
            for head, weights in enumerate(layer_maps):
                draw_map(axes, weights, LEFT + head * (cell + GAP), y, cell, map_height)
            y += map_height + GAP
        if not any(is_signed(layer) for layer in maps):
            has_masked = any(np.isnan(layer).any() for layer in maps)
            draw_color_bar(axes, request.width / 2 - 40, y + 5, 80, has_masked=has_masked)
        return figure

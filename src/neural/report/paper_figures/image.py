"""Attention over an image: the picture, the weights of one head, and the rollout of all layers."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from neural.capture.probe_image import ProbeImage
from neural.findings.head_roles import format_head
from neural.report.attention_snapshot import AttentionSnapshot, FigureError
from neural.report.paper_figure import (
    BORDER_COLOR,
    FONT_SIZE,
    MUTED_COLOR,
    TEXT_COLOR,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_text,
)

OVERLAY_COLOR = "#b3146b"
MAX_OPACITY = 0.85
"""Opacity of the largest weight; 0 is transparent."""
GAP, MARGIN, CAPTION_HEIGHT = 6.0, 2.0, 21.0
PICTURE_RESOLUTION = 300
"""Dots per inch of the overlay, at least: its patches have sharp edges."""


@dataclass(frozen=True)
class Panel:
    """One picture with weights over it."""

    title: str
    weights: np.ndarray | None
    """[token]; None for the picture alone."""
    query: tuple[int, int] | None = None
    """Row and column of the patch that attends."""


class Image(FigureKind):
    """An image with the weights of one head over it, and the rollout of all layers."""

    selects_head = True
    takes_patch = True

    def draw(self, request: FigureRequest) -> Figure:
        """The query is CLS, or the patch asked for; rollout is that of CLS."""
        snapshot = request.snapshot
        assert snapshot is not None
        shown = snapshot.image
        if shown is None:
            raise FigureError(
                f"{snapshot.name} has no image: `neural watch FOLDER --image FILE --save` makes a "
                "run with one, for models that attend over all patches"
            )
        layer, head = snapshot.select_head(request.layer, request.head)
        weights, query_name = select_weights(snapshot, layer, head, request.patch)
        image = shown.image
        step = "" if snapshot.step is None else f", step {snapshot.step:,}"
        panels = [
            Panel(f"input{step}", None),
            Panel(f"{format_head(layer, head)}: {query_name}", weights, request.patch),
        ]
        if shown.rollout is not None and request.patch is None:
            panels.append(Panel(f"rollout: {query_name}", shown.rollout))
        picture = _decode_picture(image)
        width = (request.width - 2 * MARGIN - GAP * (len(panels) - 1)) / len(panels)
        height = width * picture.shape[0] / picture.shape[1]
        figure, axes = create_canvas(request.width, CAPTION_HEIGHT + height + MARGIN)
        for index, panel in enumerate(panels):
            left = MARGIN + index * (width + GAP)
            _draw_panel(axes, image, picture, panel, left, CAPTION_HEIGHT, width, height)
        return figure


def select_weights(
    snapshot: AttentionSnapshot, layer: int, head: int, patch: tuple[int, int] | None
) -> tuple[np.ndarray, str]:
    """Weights [token] of CLS or of a patch in one head, and the name of the query."""
    assert snapshot.image is not None
    image = snapshot.image.image
    if patch is None:
        weights = snapshot.image.rows[layer, head]
        if not np.isfinite(weights).all():
            raise FigureError(f"layer {layer} of {snapshot.name} does not attend over the image")
        return weights, image.query_name
    row, column = patch
    if not (0 <= row < image.rows and 0 <= column < image.columns):
        raise FigureError(
            f"there is no patch {row},{column}: rows are 0 … {image.rows - 1}, "
            f"columns 0 … {image.columns - 1}"
        )
    maps = snapshot.maps[layer]
    if maps.shape[1:] != (image.tokens, image.tokens):
        raise FigureError(
            f"layer {layer} has no map of all {image.tokens} positions: only the row of "
            f"{image.query_name} is known"
        )
    return maps[head][image.first_patch + row * image.columns + column], f"patch {row},{column}"


def _decode_picture(image: ProbeImage) -> np.ndarray:
    """The picture in grey, [height, width], 0 … 1: colour belongs to the weights."""
    from PIL import Image as PillowImage

    try:
        with PillowImage.open(io.BytesIO(image.png), formats=("PNG",)) as opened:
            return np.asarray(opened.convert("L"), np.float32) / 255
    except Exception as error:  # pillow raises many types on a broken image
        raise FigureError(f"the picture of the probe is damaged: {error}") from None


def _draw_panel(
    axes: Axes,
    image: ProbeImage,
    picture: np.ndarray,
    panel: Panel,
    x: float,
    y: float,
    width: float,
    height: float,
) -> None:
    extent = (x, x + width, y + height, y)
    grey = np.repeat(picture[..., None], 3, axis=2)
    axes.imshow(grey, extent=extent, aspect="auto", interpolation="none")
    draw_text(axes, x, 6, panel.title, size=FONT_SIZE, color=TEXT_COLOR)
    if panel.weights is not None:
        grid = image.to_grid(panel.weights)
        largest = float(grid.max())
        colors = np.empty((*grid.shape, 4))
        colors[..., :3] = to_rgb(OVERLAY_COLOR)
        colors[..., 3] = MAX_OPACITY * grid / largest if largest > 0 else 0
        repeats = max(1, int(np.ceil(width / 72 * PICTURE_RESOLUTION / image.columns)))
        axes.imshow(
            colors.repeat(repeats, axis=0).repeat(repeats, axis=1),
            extent=extent,
            aspect="auto",
            interpolation="none",
        )
        caption = f"0 … {largest:.2g}"
        others = 1 - float(grid.sum() / panel.weights.sum())
        if image.tokens > image.patches:
            name = image.prefix_names[0] if image.tokens == image.patches + 1 else "others"
            caption += f"; {name} {100 * others:.0f} %"
        draw_text(axes, x, 15, caption, color=MUTED_COLOR)
    if panel.query is not None:
        cell_width, cell_height = width / image.columns, height / image.rows
        row, column = panel.query
        corner = (x + column * cell_width, y + row * cell_height)
        axes.add_patch(
            Rectangle(corner, cell_width, cell_height, fill=False, edgecolor="#0b5ea8", linewidth=1)
        )
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=BORDER_COLOR, linewidth=0.4)
    axes.add_patch(frame)

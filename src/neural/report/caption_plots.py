"""Caption plots: the image once per word, bright where the attention of the word lies.

    draw_run_caption(run, Path("words.png"))      the first probe image at the last step with maps

A captioner is a network that describes an image in words. Its attention for a word, the focus, is
distributed over regions of the image. The probe is a fixed set of validation examples whose
attention maps (weights) are recorded during training.
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from neural.report.caption_attention import CaptionAttention, load_caption_attention
from neural.report.plots import PLOT_STYLE, save_figure
from neural.runs.run import Run

PANELS_PER_ROW = 5
FRAME_COLOR = "#e8833a"
MIN_BRIGHTNESS = 0.2
"""Brightness of regions without attention; the region with the most has 1."""


def draw_run_caption(run: Run, path: Path) -> Path:
    """Draw the caption of the first probe image from the run folder alone."""
    return draw_caption(load_caption_attention(run), path)


def draw_caption(caption: CaptionAttention, path: Path, title: str | None = None) -> Path:
    """Draw the image, then a panel per word. A frame marks the true region of a word."""
    with matplotlib.rc_context(PLOT_STYLE):
        image_panels = int(caption.image is not None)
        panels = len(caption.words) + image_panels
        columns = min(PANELS_PER_ROW, panels)
        rows = math.ceil(panels / columns)
        is_flat = caption.grid is None
        figure = Figure(
            figsize=((3.2 if is_flat else 1.7) * columns, (0.9 if is_flat else 2.0) * rows + 0.4),
            layout="constrained",
        )
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel in axes:
            panel.set_axis_off()
        if caption.image is not None:
            axes[0].imshow(caption.image)
        # padded with None: `regions` may be empty
        true_regions = [*caption.regions, *[None] * len(caption.words)]
        for panel, word, focus, region in zip(
            axes[image_panels:], caption.words, caption.focus, true_regions, strict=False
        ):
            _draw_word(panel, caption, focus, region)
            panel.set_title(f"{word}  {focus.max():.2f}", fontsize=9)
        figure.suptitle(
            title or " ".join(word for word in caption.words if word != "<end>"), fontsize=11
        )
        return save_figure(figure, path)


def _draw_word(
    panel: Axes, caption: CaptionAttention, focus: np.ndarray, region: int | None
) -> None:
    """Draw the image, each region as bright as its weight; frame the region the word describes.

    `focus` (regions,) are the attention weights of the word.
    """
    rows, columns = caption.grid or (1, len(focus))
    weights = focus.reshape(rows, columns)
    if caption.image is None:
        panel.imshow(
            weights, cmap="magma", vmin=0, vmax=1, extent=(0, columns, rows, 0), aspect="auto"
        )
        region_height, region_width = 1.0, 1.0
    else:
        region_height = caption.image.shape[0] / rows
        region_width = caption.image.shape[1] / columns
        brightness = np.kron(
            MIN_BRIGHTNESS + (1 - MIN_BRIGHTNESS) * weights / max(float(weights.max()), 1e-9),
            np.ones((int(region_height), int(region_width))),
        )[..., None]
        panel.imshow(
            # the second term brightens black regions too
            np.clip(caption.image / 255 * brightness + 0.1 * brightness, 0, 1),
            extent=(0, caption.image.shape[1], caption.image.shape[0], 0),
        )
    if region is not None:
        row, column = divmod(region, columns)
        panel.add_patch(
            Rectangle(
                (column * region_width, row * region_height),
                region_width,
                region_height,
                fill=False,
                color=FRAME_COLOR,
                linewidth=1.5,
            )
        )

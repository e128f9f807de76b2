"""Where each word was looked for: the picture once for every word, bright where the gaze rests.

    caption_plot(run, Path("words.png"))      the probe's first picture, at the run's last look that kept maps
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from neural.tracking.quantised import maps_from, unpack
from neural.tracking.run import Run
from neural.views.plots import STYLE, save
from neural.views.reading import Missing

ACROSS = 5
"""Panels in a row."""
GAZE = "focus"
"""What the captioner's attention is called in a run."""
MARK = "#e8833a"


@dataclass(frozen=True, kw_only=True)
class Looked:
    """One caption, and where each of its words was looked for."""

    words: Sequence[str]
    focus: np.ndarray
    """(words, m); rows sum to 1."""
    grid: tuple[int, int] | None = None
    """Rows and columns of the regions; side by side where nobody knows."""
    picture: np.ndarray | None = None
    """Red, green and blue from 0 to 255, (height, width, 3)."""
    places: Sequence[int | None] = ()
    """The region that each word is about, where it is known."""


def looked(run: Run) -> Looked:
    """What the run kept of its first probe picture; Missing where it kept no maps of a captioner."""
    steps = run.map_steps()
    labels = run.described("probe/labels")
    packed = run.maps(steps[-1]).get(GAZE) if steps else None
    if packed is None or not labels or run.described("captions/places") is None:
        raise Missing(f"{run.name} has no maps of a captioner's gaze; see `tracking.maps_every`")
    words, picture, grid = labels[0], run.described("captions/picture"), run.described("captions/grid")
    count = words.index("·") if "·" in words else len(words)
    with maps_from(run.path, steps[-1]):
        focus = unpack(packed)[0, :count]
    return Looked(
        words=words[:count], focus=focus, grid=(grid[0], grid[1]) if grid else None,
        picture=None if picture is None else np.array(picture, dtype=np.uint8),
        places=run.described("captions/places")[:count],
    )  # fmt: skip


def caption_plot(run: Run, path: Path) -> Path:
    """Of a run alone, without its data."""
    return draw(looked(run), path)


def draw(one: Looked, path: Path, title: str | None = None) -> Path:
    """As a picture file: the scene, then a panel for every word. A frame marks the region that a word is about."""
    with matplotlib.rc_context(STYLE):
        shown = one.picture is not None
        panels = len(one.words) + shown
        across = min(ACROSS, panels)
        rows = -(-panels // across)
        wide = one.grid is None
        figure = Figure(figsize=((3.2 if wide else 1.7) * across, (0.9 if wide else 2.0) * rows + 0.4),
                        layout="constrained")  # fmt: skip
        axes = figure.subplots(rows, across, squeeze=False).ravel()
        for panel in axes:
            panel.set_axis_off()
        if one.picture is not None:
            axes[0].imshow(one.picture)
        places = [*one.places, *[None] * len(one.words)]
        for panel, word, focus, place in zip(axes[shown:], one.words, one.focus, places, strict=False):
            _word(panel, one, focus, place)
            panel.set_title(f"{word}  {focus.max():.2f}", fontsize=9)
        figure.suptitle(title or " ".join(word for word in one.words if word != "<end>"), fontsize=11)
        return save(figure, path)


def _word(panel: Axes, one: Looked, focus: np.ndarray, place: int | None) -> None:
    rows, columns = one.grid or (1, len(focus))
    weights = focus.reshape(rows, columns)
    if one.picture is None:
        panel.imshow(weights, cmap="magma", vmin=0, vmax=1, extent=(0, columns, rows, 0), aspect="auto")
        high, wide = 1.0, 1.0
    else:
        high, wide = one.picture.shape[0] / rows, one.picture.shape[1] / columns
        light = np.kron(0.2 + 0.8 * weights / max(float(weights.max()), 1e-9), np.ones((int(high), int(wide))))
        panel.imshow(np.clip(one.picture / 255 * light[..., None] + 0.1 * light[..., None], 0, 1),
                     extent=(0, one.picture.shape[1], one.picture.shape[0], 0))  # fmt: skip
    if place is not None:
        row, column = divmod(place, columns)
        panel.add_patch(Rectangle((column * wide, row * high), wide, high, fill=False, color=MARK, linewidth=1.5))

"""Figures for papers: base class of their kinds, sizes, style and files.

A kind of figure is a file in report/paper_figures/; its name is what `neural figure --kind` takes.
Figures are drawn at their final size, with fonts of at least 6 pt. Text stays text in SVG and PDF.
All scales have monotonic lightness and lines differ by their style, too, so a figure printed in
grey can be read. The same data give the same bytes.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, FuncNorm, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath

from neural.core.files import open_atomic
from neural.language.declaration import RegistryEntry
from neural.report.attention_snapshot import AttentionSnapshot, FigureError
from neural.runs.errors import translate_errors
from neural.runs.run import Run

POINTS_PER_UNIT = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
MIN_WIDTH, MAX_WIDTH = 72.0, 72 * 40.0
"""In points: 1 … 40 in."""
FONT_SIZE, SMALL_FONT_SIZE = 7.0, 6.0
"""In points, at the size of print."""
FORMATS = ("svg", "pdf", "png")
RESOLUTION = 600
"""Dots per inch of PNG files."""
MAP_RESOLUTION = 200
"""Dots per inch of maps, at least."""
STYLE = {
    "svg.hashsalt": "neural",  # fixed, so that the ids in SVG files are reproducible
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,  # TrueType: text can be searched and edited
    "text.parse_math": False,  # labels come from the user and may contain `$`
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine has it
    "font.size": FONT_SIZE,
    "axes.linewidth": 0.6,
    "axes.labelsize": FONT_SIZE,
    "xtick.labelsize": SMALL_FONT_SIZE,
    "ytick.labelsize": SMALL_FONT_SIZE,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "image.composite_image": False,  # each map stays an object that editors can select
    "legend.frameon": False,
    "legend.fontsize": SMALL_FONT_SIZE,
}
FILE_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
"""No date and no version, so that files are reproducible."""

TEXT_COLOR, MUTED_COLOR, BORDER_COLOR = "#1b2330", "#56616f", "#9aa6b2"
MASKED_COLOR = "#e4e7eb"
WEIGHT_COLORS = ("#ffffff", "#cddef0", "#8bb8de", "#4283be", "#194f91", "#0a2354")
"""From weight 0 to 1, lightness falls steadily."""
SIGNED_COLORS = ("#0b5ea8", "#fafafa", "#be4e00")


@dataclass(frozen=True, kw_only=True)
class FigureRequest:
    """What to draw: attention at one step or curves of runs, and how large."""

    snapshot: AttentionSnapshot | None = None
    """For kinds that need one."""
    runs: Sequence[Run] = ()
    layer: int | None = None
    head: int | None = None
    metrics: Sequence[str] = ()
    patch: tuple[int, int] | None = None
    """Row and column of the patch of an image that attends; CLS if None."""
    width: float
    """In points."""
    height: float | None = None
    """In points; the kind chooses it if None."""


class FigureKind(RegistryEntry):
    """One kind of figure."""

    needs_attention: ClassVar[bool] = True
    """Whether it shows the maps of one run or capture; else it shows curves of runs."""
    selects_head: ClassVar[bool] = False
    """Whether it shows one head."""
    takes_patch: ClassVar[bool] = False
    """Whether a patch of an image can be chosen."""
    takes_height: ClassVar[bool] = False
    """Whether the height can be chosen; else it follows from the width."""

    @abstractmethod
    def draw(self, request: FigureRequest) -> Figure:
        """The figure at its size of print; called with STYLE in effect."""


class PaperFigure:
    """A drawn figure. In a notebook it shows itself."""

    def __init__(self, figure: Figure, *, kind: str, stem: str, description: str) -> None:
        self.figure, self.kind = figure, kind
        self.stem = stem
        """Name of a file for it, without ending."""
        self.description = description

    def __repr__(self) -> str:
        width, height = self.size_in_inches
        return f"{self.description}, {width:.2f} × {height:.2f} in; .save(path) writes it"

    @property
    def size_in_inches(self) -> tuple[float, float]:
        """Width and height."""
        width, height = self.figure.get_size_inches()
        return float(width), float(height)

    def save(self, path: str | Path | None = None) -> Path:
        """Write it as .svg, .pdf or .png; `path` names the format. Returns the path."""
        path = Path(path) if path is not None else Path(f"{self.stem}.svg")
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise FigureError(
                f"{path}: a figure is written as {', '.join(FORMATS)}; "
                f"name it {path.with_suffix('.svg')}"
            )
        content = self._render(suffix)
        with (
            translate_errors(f"{path} cannot be written"),
            open_atomic(path, durable=False) as file,
        ):
            file.write(content)
        return path

    def _repr_svg_(self) -> str:
        return self._render("svg").decode()

    def _render(self, suffix: str) -> bytes:
        buffer = io.BytesIO()
        with matplotlib.rc_context(STYLE), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            metadata = FILE_METADATA[suffix]
            self.figure.savefig(buffer, format=suffix, dpi=RESOLUTION, metadata=metadata)
        missing = sorted(
            {match[1] for entry in caught if (match := _MISSING_GLYPH.search(str(entry.message)))}
        )
        if missing and suffix != "svg":  # an SVG has the characters themselves
            characters = " ".join(chr(int(code)) for code in missing)
            warnings.warn(
                f"the font has no {characters}: drawn as a box; an SVG file keeps the text",
                MissingGlyphWarning,
                stacklevel=3,
            )
        return buffer.getvalue()


_MISSING_GLYPH = re.compile(r"Glyph (\d+) ")


class MissingGlyphWarning(UserWarning):
    """A character of a label is not in the font."""


def parse_length(text: str | float) -> float:
    """A length such as `3.25in`, `8.2cm`, `82mm` or `234pt` in points; a number is in inches."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm|pt)?\s*", str(text))
    points = float(match[1]) * POINTS_PER_UNIT[match[2] or "in"] if match else float("nan")
    if not MIN_WIDTH <= points <= MAX_WIDTH:
        raise FigureError(
            f"`{text}` is no size of a figure: write 1in … 40in, or the same in cm, mm or pt, "
            "such as 3.25in"
        )
    return points


def freeze_layout(figure: Figure) -> None:
    """Compute the layout once: an engine starts from its last result, so files would differ."""
    if figure.get_layout_engine() is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font lacks; `save` names them
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def create_canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure whose axes cover it: coordinates are points from the upper left corner."""
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.autoscale(False)
    return figure, axes


def draw_text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    size: float = SMALL_FONT_SIZE,
    align: str = "left",
    valign: str = "center",
    rotation: float = 0,
    color: str = TEXT_COLOR,
) -> None:
    """Text at a point of a canvas."""
    axes.text(
        x,
        y,
        text,
        fontsize=size,
        ha=align,
        va="center_baseline" if valign == "center" and rotation == 0 else valign,
        rotation=rotation,
        rotation_mode="default",
        color=color,
    )


def draw_map(
    axes: Axes, weights: np.ndarray, x: float, y: float, width: float, height: float
) -> None:
    """One map, [query, key], on a canvas, with a border."""
    colors = get_colormap(is_signed=is_signed(weights))(make_norm(weights)(weights), bytes=True)
    # A cell is several pixels: programs that smooth images blur its edges only. Maps with more
    # cells than pixels are averaged when they are written.
    repeats = math.ceil(width / 72 * MAP_RESOLUTION / weights.shape[1])
    axes.imshow(
        colors.repeat(repeats, axis=0).repeat(repeats, axis=1),
        extent=(x, x + width, y + height, y),
        aspect="auto",
        interpolation="none" if repeats > 1 else "auto",
    )
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=BORDER_COLOR, linewidth=0.4)
    axes.add_patch(frame)


def is_signed(weights: np.ndarray) -> bool:
    """Whether the weights are those of a signed mechanism."""
    return bool(np.nanmin(weights, initial=0.0) < 0)


def make_norm(weights: np.ndarray) -> Normalize:
    """Square-root scale from 0 to 1; of signed weights, from −s to s, the largest |weight|."""
    scale = max(1.0, float(np.nanmax(np.abs(weights), initial=0.0)))
    if not is_signed(weights):
        return FuncNorm((np.sqrt, np.square), vmin=0, vmax=scale)
    return FuncNorm((_signed_root, _signed_square), vmin=-scale, vmax=scale)


def _signed_root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _signed_square(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.square(values)


def get_colormap(*, is_signed: bool = False) -> Colormap:
    """Colors of weights; masked keys are grey."""
    colors = SIGNED_COLORS if is_signed else WEIGHT_COLORS
    cmap = LinearSegmentedColormap.from_list("weights", list(colors))
    return cmap.with_extremes(bad=MASKED_COLOR)


def draw_color_bar(
    axes: Axes, x: float, y: float, width: float, *, has_masked: bool = True
) -> None:
    """Color bar of weights from 0 to 1 with its numbers below, and the color of masked keys."""
    height = 5.0
    ramp = np.square(np.linspace(0, 1, 128))[None]
    draw_map(axes, ramp, x, y, width, height)
    for weight in (0, 0.1, 0.5, 1):
        draw_text(
            axes, x + width * float(np.sqrt(weight)), y + height + 5, f"{weight:g}", align="center"
        )
    draw_text(axes, x - 4, y + height / 2, "weight", align="right")
    if has_masked:
        swatch = Rectangle(
            (x + width + 14, y),
            height,
            height,
            facecolor=MASKED_COLOR,
            edgecolor=BORDER_COLOR,
            linewidth=0.4,
        )
        axes.add_patch(swatch)
        draw_text(axes, x + width + 14 + height + 3, y + height / 2, "masked")


def measure_text(text: str, size: float = SMALL_FONT_SIZE) -> float:
    """Width of a text in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font lacks
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)

"""The reliability diagram: what was said, what came true, and how many there were.

    reliability_plot(choice.diagrams, folder / "reliability", title="P(boundary)")   # .svg and .png
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from neural.tasks.cutting.reliability import Reliability
from neural.views.plots import STYLE, save

COLOURS = ("0.55", "C0", "C1", "C2")
"""The first is what the others are compared with."""
MARKS = ("o", "D", "s", "^")


def reliability_plot(
    diagrams: Mapping[str, Reliability], path: Path, *, title: str, xlabel: str = "probability that was said",
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:  # fmt: skip
    """Draws the diagrams into one picture, beside each other by name; `path` is without an ending."""
    with matplotlib.rc_context(STYLE):
        figure = _draw(diagrams, title, xlabel)
        return [save(figure, path.with_name(f"{path.name}.{one}")) for one in formats]


def _draw(diagrams: Mapping[str, Reliability], title: str, xlabel: str) -> Figure:
    figure = Figure(figsize=(6, 7.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 1], [0, 1], color="0.3", linewidth=1, linestyle="--", label=" perfect")
    for at, (name, one) in enumerate(diagrams.items()):
        colour = COLOURS[at % len(COLOURS)]
        said, true = np.array(one.said), np.array(one.true)
        reach = np.stack([true - one.low, one.high - true])
        above.errorbar(said, true, yerr=reach, color=colour, marker=MARKS[at % len(MARKS)], markersize=5, linewidth=1.2,
                       elinewidth=1, capsize=2, label=f" {name}")  # fmt: skip  # one that begins with _ would be hidden
        edges = np.array([0.0, *one.edges, 1.0])
        width = np.diff(edges) / len(diagrams)
        below.bar(edges[:-1] + at * width, one.everything, width=width * 0.92, align="edge", color=colour)
    above.set(ylabel="share that came true (95 % intervals)", ylim=(-0.02, 1.02), title=title)
    above.legend(loc="upper left")
    below.set(xlabel=xlabel, ylabel="elements", xlim=(-0.02, 1.02), yscale="log", ylim=(0.7, None))
    below.set_axisbelow(True)
    below.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")   # 1,000: the style shows no formulas
    return figure

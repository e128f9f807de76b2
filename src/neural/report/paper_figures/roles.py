"""The role of every head, as a grid of layers and heads."""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from neural.findings.head_roles import TOO_SHORT
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figure import (
    BORDER_COLOR,
    FONT_SIZE,
    MUTED_COLOR,
    FigureKind,
    FigureRequest,
    create_canvas,
    draw_text,
    measure_text,
)

ROLE_BADGES: dict[str, tuple[str, str]] = {
    "previous token": ("prev", "#9ecae9"),
    "induction": ("ind", "#f5b880"),
    "sink": ("sink", "#e3c35a"),
    "positional": ("pos", "#a6d8c3"),
    "local": ("local", "#c5b3e6"),
    "delimiter": ("delim", "#eeb0cf"),
    "uniform": ("unif", "#f0f1f3"),
    "mixed": ("·", "#ffffff"),
    TOO_SHORT: ("?", "#ffffff"),
}
"""Role → word in its cell, and color. The words tell roles apart in grey."""
LEFT, TOP, ROW_HEIGHT, LEGEND_ROW, GAP = 16.0, 12.0, 14.0, 10.0, 1.5


class Roles(FigureKind):
    """Role of every head at one step: a row per layer, a column per head, and a legend."""

    def draw(self, request: FigureRequest) -> Figure:
        """Roles are those of findings/head_roles.py, from all snapshots up to the step."""
        snapshot = request.snapshot
        assert snapshot is not None
        if snapshot.roles is None:
            raise FigureError(
                f"nothing is known about the roles of the heads of {snapshot.name}: they need the "
                "measure `relative_entropy` or maps; see `tracking`"
            )
        names = [[str(name) for name in row if name] for row in snapshot.roles]
        if not any(names):
            raise FigureError(f"{snapshot.name} has no heads with a role")
        columns = max(map(len, names))
        cell = (request.width - LEFT) / columns
        words = {role: word for role, (word, _) in ROLE_BADGES.items()}
        if max(map(measure_text, words.values())) > cell - GAP - 2:  # two letters differ, too
            words = {role: word[:2] for role, word in words.items()}
        counts = Counter(name for row in names for name in row)
        listed = [role for role in ROLE_BADGES if counts[role]]
        legend_columns = 2 if request.width > 200 else 1
        legend_rows = -(-len(listed) // legend_columns)
        height = TOP + len(names) * ROW_HEIGHT + 6 + legend_rows * LEGEND_ROW + 2
        figure, axes = create_canvas(request.width, height)
        for head in range(columns):
            draw_text(axes, LEFT + (head + 0.5) * cell, 6, f"h{head}", align="center")
        for layer, row in enumerate(names):
            y = TOP + layer * ROW_HEIGHT
            draw_text(
                axes, LEFT - 4, y + ROW_HEIGHT / 2, f"L{layer}", size=FONT_SIZE, align="right"
            )
            for head, role in enumerate(row):
                x = LEFT + head * cell
                _draw_cell(axes, x, y, cell - GAP, ROW_HEIGHT - GAP, role)
                draw_text(
                    axes,
                    x + (cell - GAP) / 2,
                    y + (ROW_HEIGHT - GAP) / 2,
                    words.get(role, role[:1]),
                    align="center",
                )
        top = TOP + len(names) * ROW_HEIGHT + 6
        total = sum(counts.values())
        for index, role in enumerate(listed):
            x = LEFT + (index % legend_columns) * (request.width - LEFT) / legend_columns
            y = top + (index // legend_columns) * LEGEND_ROW
            _draw_cell(axes, x, y, 22, LEGEND_ROW - 2, role)
            draw_text(axes, x + 11, y + LEGEND_ROW / 2 - 1, words[role], align="center")
            name = "no role" if role == "mixed" else role
            text = f"{name}, {counts[role]} of {total}"
            draw_text(axes, x + 26, y + LEGEND_ROW / 2 - 1, text, color=MUTED_COLOR)
        return figure


def _draw_cell(axes: Axes, x: float, y: float, width: float, height: float, role: str) -> None:
    _, color = ROLE_BADGES.get(role, ("", "#ffffff"))
    cell = Rectangle((x, y), width, height, facecolor=color, edgecolor=BORDER_COLOR, linewidth=0.4)
    axes.add_patch(cell)

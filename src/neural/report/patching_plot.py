"""Heat maps of patching experiments, as SVG and as a page that works offline.

    render_svg(result.to_dict())      heads × positions, if they were measured
    render_page(result.to_dict())     all sweeps, paths and pairs

The input is the JSON data of `neural patch`. Colours go from blue (−1: the patch moves the metric
away from the clean one) over white (0) to orange (1: it is restored). A frame marks units with more
effect than mismatched pairs have. The same data give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from neural.core.html_document import (
    Html,
    render_document,
    render_paragraph,
    render_section,
    render_table,
)
from neural.data.text_encoding import VISIBLE_WHITESPACE

NEGATIVE_COLOR, ZERO_COLOR, POSITIVE_COLOR = (11, 94, 168), (250, 250, 250), (190, 78, 0)
TEXT_COLOR = "#1b2330"
CELL_HEIGHT = 18
MIN_CELL_WIDTH, MAX_CELL_WIDTH = 18, 38
TARGET_WIDTH = 900
"""Width of all cells of a row, if that is within the limits of a cell."""
MIN_NUMBER_WIDTH = 34
"""Narrower cells have no number."""
CHARACTER_WIDTH = 6.6
"""Of the 11-pixel monospaced font, with a margin."""
MAX_ROWS = 64
"""Rows of a heat map; of more heads, those that restore most are drawn."""
MAX_LABEL = 12
"""Characters of the label of a token."""
SWEEP_TITLES = {
    "positions": "Heads × positions",
    "residual": "Residual stream × positions",
    "heads": "Heads, at all positions",
}
"""In the order in which a single picture chooses among them."""
MAX_TABLE_ROWS = 40


@dataclass(frozen=True)
class HeatMap:
    """A table of coloured cells."""

    title: str
    rows: list[str]
    columns: list[str]
    values: np.ndarray
    """[row, column]; NaN: no cell."""
    is_marked: np.ndarray
    tooltips: list[list[str]]
    notes: tuple[str, ...] = ()


def render_svg(data: Mapping[str, Any]) -> str:
    """The most detailed heat map of an experiment, as an SVG file."""
    kind = next(kind for kind in SWEEP_TITLES if kind in data["sweeps"])
    heat_map = build_heat_map(data, kind)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + draw_heat_map(heat_map, is_file=True)


def render_page(data: Mapping[str, Any]) -> str:
    """A self-contained page: heat maps, tables of effects, paths and pairs."""
    used = [pair for pair in data["pairs"] if pair["used"]]
    sections = [render_paragraph(f"Note: {note}.") for note in data["notes"]]
    for kind, title in SWEEP_TITLES.items():
        if kind not in data["sweeps"]:
            continue
        heat_map = build_heat_map(data, kind)
        children = [Html(f'<div class="wide">{draw_heat_map(heat_map, is_file=False)}</div>')]
        children += [render_paragraph(note) for note in heat_map.notes]
        children.append(_render_effects(data["sweeps"][kind]))
        sections.append(render_section(title, *children))
    if data["paths"]:
        header = ["path", "through", *_number_headers()]
        rows = [
            [f"{row['sender']} → {row['receiver']}", row["through"], *_format_numbers(row)]
            for row in data["paths"]
        ]
        sections.append(render_section("Paths", render_table(header, rows)))
    rows = [
        [
            pair["clean"],
            pair["corrupted"],
            format_share(pair["clean_metric"]),
            format_share(pair["corrupted_metric"]),
            "" if pair["used"] else "left out",
        ]
        for pair in data["pairs"]
    ]
    header = ["clean", "corrupted", f"{data['metric']} (clean)", "(corrupted)", ""]
    sections.append(render_section("Pairs", render_table(header, rows)))
    lead = (
        f"{data['model']}, {len(used)} of {len(data['pairs'])} pairs. The model runs on the "
        "corrupted input; what one unit wrote on the clean input is patched in. Restored share of "
        f"{data['metric']}: 0 changes nothing, 1 is the clean input. A frame marks an effect: more "
        "than what the differences between clean and corrupted inputs of other pairs change, with a "
        "probability of 5 % at most for any false frame in a picture."
    )
    return render_document(f"Patching: {data['model']}", lead, sections)


def build_heat_map(data: Mapping[str, Any], kind: str) -> HeatMap:
    """The heat map of a sweep."""
    entries: Sequence[Mapping[str, Any]] = data["sweeps"][kind]
    if kind == "heads":
        rows = [f"L{layer}" for layer in sorted({entry["layer"] for entry in entries})]
        columns = [f"h{head}" for head in sorted({entry["head"] for entry in entries})]
    else:
        names = [_name_row(entry, kind) for entry in entries]
        rows = list(dict.fromkeys(names))
        columns = [format_token(token) for token in data["tokens"]]
    values = np.full((len(rows), len(columns)), np.nan)
    is_marked = np.zeros(values.shape, bool)
    tooltips = [[""] * len(columns) for _ in rows]
    row_index = {name: index for index, name in enumerate(rows)}
    for entry in entries:
        row = row_index[f"L{entry['layer']}" if kind == "heads" else _name_row(entry, kind)]
        column = entry["head"] if kind == "heads" else entry["position"]
        restored = entry["restored"]
        values[row, column] = np.nan if restored is None else restored
        is_marked[row, column] = entry["effect"]
        tooltips[row][column] = _describe(entry, kind)
    notes: tuple[str, ...] = ()
    if kind != "heads" and len(data["pairs"]) > 1:
        notes = ("Tokens are those of the first pair; corrupted ones come after a slash.",)
    if len(rows) > MAX_ROWS:
        sizes = np.nan_to_num(np.abs(values)).max(axis=1) + 1000 * is_marked.any(axis=1)
        chosen = np.sort(np.argsort(-sizes, kind="stable")[:MAX_ROWS])
        notes += (f"The {MAX_ROWS} of {len(rows)} heads that restore most.",)
        rows = [rows[index] for index in chosen]
        values, is_marked = values[chosen], is_marked[chosen]
        tooltips = [tooltips[index] for index in chosen]
    title = f"{data['model']}: restored share of {data['metric']}"
    return HeatMap(title, rows, columns, values, is_marked, tooltips, notes)


def draw_heat_map(heat_map: HeatMap, *, is_file: bool) -> str:
    """An SVG element; `is_file`: with a white background and a title, to stand alone."""
    longest = max(map(len, heat_map.columns), default=1)
    cell = min(MAX_CELL_WIDTH, max(MIN_CELL_WIDTH, TARGET_WIDTH // len(heat_map.columns)))
    left = 16 + CHARACTER_WIDTH * max(map(len, heat_map.rows), default=1)
    is_rotated = longest * CHARACTER_WIDTH > cell
    header = 8 + (CHARACTER_WIDTH * longest if is_rotated else 14)
    top = header + (28 if is_file else 0)
    width = max(left + cell * len(heat_map.columns) + 16, 300.0)
    if is_file:
        width = max(width, 16 + CHARACTER_WIDTH * len(heat_map.title))
    bottom = top + CELL_HEIGHT * len(heat_map.rows)
    height = bottom + 40
    color = f' style="color:{TEXT_COLOR}"' if is_file else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat-map" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(heat_map.title)}" font-family="ui-monospace, monospace" '
        f'font-size="11"{color}>'
    ]
    if is_file:
        parts.append(f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>')
        parts.append(_draw_text(8, 18, heat_map.title, "start"))
    for index, label in enumerate(heat_map.columns):
        x = left + cell * (index + 0.5)
        turn = f' transform="rotate(-90 {x + 4:.1f} {top - 5:.1f})"' if is_rotated else ""
        anchor = "start" if is_rotated else "middle"
        parts.append(_draw_text(x + (4 if is_rotated else 0), top - 5, label, anchor, turn))
    for row, name in enumerate(heat_map.rows):
        y = top + CELL_HEIGHT * row
        parts.append(_draw_text(left - 6, y + 13, name, "end"))
        for column in range(len(heat_map.columns)):
            value = float(heat_map.values[row, column])
            if np.isnan(value):
                continue
            x = left + cell * column
            tooltip = escape(heat_map.tooltips[row][column])
            mark = ' class="cell effect"' if heat_map.is_marked[row, column] else ' class="cell"'
            parts.append(
                f'<rect{mark} x="{x:.1f}" y="{y}" width="{cell - 1}" height="{CELL_HEIGHT - 1}" '
                f'fill="{get_color(value)}"><title>{tooltip}</title></rect>'
            )
            if cell >= MIN_NUMBER_WIDTH:
                ink = "#ffffff" if abs(value) > 0.6 else TEXT_COLOR
                text = _draw_text(x + cell / 2, y + 13, format_share(value), "middle", ink=ink)
                parts.append(text.replace("<text", '<text pointer-events="none"', 1))
    # frames come last, so that neighbouring cells do not cover them
    for row, column in np.argwhere(heat_map.is_marked):
        parts.append(
            f'<rect class="frame" x="{left + cell * column:.1f}" y="{top + CELL_HEIGHT * row}" '
            f'width="{cell - 1}" height="{CELL_HEIGHT - 1}" fill="none" stroke="currentColor" '
            'stroke-width="2" pointer-events="none"/>'
        )
    parts += _draw_color_bar(left, bottom + 14)
    return "\n".join([*parts, "</svg>"])


def get_color(value: float) -> str:
    """Colour of a restored share; shares beyond −1 and 1 have the colours of these."""
    share = min(1.0, abs(value))
    end = POSITIVE_COLOR if value > 0 else NEGATIVE_COLOR
    channels = (
        round(zero + (channel - zero) * share)
        for zero, channel in zip(ZERO_COLOR, end, strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def format_share(value: float | None) -> str:
    """Two decimals, without a leading zero."""
    if value is None or np.isnan(value):
        return "–"
    text = f"{value:.2f}".replace("-", "−")
    text = text.removeprefix("−") if text.strip("−0.") == "" else text
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text


def format_token(text: str) -> str:
    """A token with visible white space, shortened."""
    shown = "".join(VISIBLE_WHITESPACE.get(character, character) for character in text)
    shown = shown.replace("\t", "⇥").replace("\r", "␍")
    return shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL - 1]}…"


def _draw_text(
    x: float, y: float, text: str, anchor: str, turn: str = "", ink: str = "currentColor"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}"{turn}>'
        f"{escape(text, quote=False)}</text>"
    )


def _draw_color_bar(x: float, y: float) -> list[str]:
    """Colours of −1 … 1 with their numbers."""
    steps = np.linspace(-1, 1, 21)
    parts = [
        f'<rect x="{x + 6 * index:.1f}" y="{y}" width="6" height="8" fill="{get_color(step)}"/>'
        for index, step in enumerate(steps)
    ]
    labels = ((0, "−1"), (10, "0"), (20, "1"))
    parts += [_draw_text(x + 6 * index + 3, y + 20, text, "middle") for index, text in labels]
    return [*parts, _draw_text(x + 6 * len(steps) + 8, y + 8, "restored", "start")]


def _name_row(entry: Mapping[str, Any], kind: str) -> str:
    return f"L{entry['layer']}" if kind == "residual" else f"L{entry['layer']} h{entry['head']}"


def _describe(entry: Mapping[str, Any], kind: str) -> str:
    """The tooltip of a cell."""
    name = f"L{entry['layer']}" + ("" if entry["head"] is None else f" h{entry['head']}")
    if kind != "heads":
        name += f" at {entry['position']} `{format_token(entry['token'])}`"
    text = f"{name}: restored {format_share(entry['restored'])}"
    if entry["standard_error"] is not None:
        text += f" ± {format_share(entry['standard_error'])}"
    if entry["mismatched"] is not None:
        text += f", other pairs {format_share(entry['mismatched'])}"
    return text + ("" if entry["p"] is None else f", p {entry['p']:.2g}")


def _number_headers() -> list[str]:
    return ["restored", "95 % interval", "other pairs", "p"]


def _format_numbers(entry: Mapping[str, Any]) -> list[str]:
    interval = (
        ""
        if entry["low"] is None
        else f"{format_share(entry['low'])} … {format_share(entry['high'])}"
    )
    p = "" if entry["p"] is None else f"{entry['p']:.2g}"
    return [format_share(entry["restored"]), interval, format_share(entry["mismatched"]), p]


def _render_effects(entries: Sequence[Mapping[str, Any]]) -> Html:
    """The units with an effect, or the largest if there is none."""
    effects = [entry for entry in entries if entry["effect"]]
    shown = sorted(effects or entries, key=lambda entry: -abs(entry["restored"] or 0.0))
    limit = MAX_TABLE_ROWS if effects else 5
    has_position = any(entry["position"] is not None for entry in entries)
    rows = []
    for entry in shown[:limit]:
        name = f"L{entry['layer']}" + ("" if entry["head"] is None else f" h{entry['head']}")
        token = format_token(entry["token"] or "")
        position = [f"{entry['position']} {token}"] if has_position else []
        rows.append([name, *position, *_format_numbers(entry)])
    header = ["unit", *(["position"] if has_position else []), *_number_headers()]
    table = render_table(header, rows)
    if effects:
        hidden = len(effects) - len(rows)
        return Html(table + (render_paragraph(f"and {hidden} more effects") if hidden > 0 else ""))
    return Html(render_paragraph("No unit has an effect; these restore most.") + table)

"""Heat maps of patching: cells, colours, labels, and pages."""

import re
from xml.etree import ElementTree

import pytest

from neural.report.patching_plot import (
    MAX_ROWS,
    build_heat_map,
    draw_heat_map,
    format_share,
    format_token,
    get_color,
    render_page,
    render_svg,
)

SVG = "{http://www.w3.org/2000/svg}"


def make_data(layers=2, heads=3, tokens=(" the", "a\n", "<x>/y")):
    """Heads × positions: only L1 h2 at the last position restores."""

    def make_row(layer, head, position):
        is_effect = (layer, head) == (1, 2) and position in (None, len(tokens) - 1)
        return {
            "sweep": "",
            "layer": layer,
            "head": head,
            "position": position,
            "token": None if position is None else tokens[position],
            "restored": 0.75 if is_effect else 0.0,
            "standard_error": 0.05,
            "low": 0.6 if is_effect else None,
            "high": 0.9 if is_effect else None,
            "mismatched": 0.1,
            "p": 0.004 if is_effect else 1.0,
            "effect": is_effect,
        }

    units = [(layer, head) for layer in range(layers) for head in range(heads)]
    pair = {
        "clean": "the <x>",
        "corrupted": "the y",
        "clean_metric": 2.0,
        "corrupted_metric": None,
        "used": True,
    }
    return {
        "model": "small & <b>",
        "source": "",
        "metric": "loss",
        "unit": "nats",
        "pairs": [pair, {**pair, "used": False}],
        "layers": ["a"] * layers,
        "tokens": list(tokens),
        "sweeps": {
            "heads": [make_row(*unit, None) for unit in units],
            "positions": [
                make_row(*unit, position) for unit in units for position in range(len(tokens))
            ],
        },
        "paths": [],
        "notes": ["a note"],
    }


def test_the_picture_has_a_cell_per_head_and_position_with_its_numbers():
    root = ElementTree.fromstring(render_svg(make_data()))
    cells = [cell for cell in root.iter(f"{SVG}rect") if "cell" in cell.get("class", "")]
    assert len(cells) == 2 * 3 * 3
    (effect,) = [cell for cell in cells if "effect" in cell.get("class")]
    title = effect.find(f"{SVG}title").text
    assert title == "L1 h2 at 2 `<x>/y`: restored .75 ± .05, other pairs .10, p 0.004"
    assert effect.get("fill") == get_color(0.75)
    assert len([rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "frame"]) == 1
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"L0 h0", "L1 h2", "␣the", "<x>/y", "−1", "1"} <= {
        text.replace("·", "␣") for text in texts
    }


def test_the_picture_of_heads_has_a_row_per_layer():
    data = make_data()
    del data["sweeps"]["positions"]
    heat_map = build_heat_map(data, "heads")
    assert heat_map.rows == ["L0", "L1"]
    assert heat_map.columns == ["h0", "h1", "h2"]
    assert heat_map.values.tolist() == [[0, 0, 0], [0, 0, 0.75]]
    assert heat_map.is_marked.tolist() == [[False] * 3, [False, False, True]]
    assert ">.75<" in draw_heat_map(heat_map, is_file=False)


def test_of_many_heads_those_that_restore_most_are_drawn():
    heat_map = build_heat_map(make_data(layers=10, heads=12), "positions")
    assert len(heat_map.rows) == MAX_ROWS == len(heat_map.values)
    assert "L1 h2" in heat_map.rows
    assert f"The {MAX_ROWS} of 120 heads" in heat_map.notes[-1]


def test_colours_are_symmetric_and_bounded():
    assert get_color(0) == "#fafafa"
    assert get_color(5) == get_color(1) == "#be4e00"
    assert get_color(-5) == get_color(-1) == "#0b5ea8"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.753, ".75"),
        (-0.5, "−.50"),
        (1.0, "1.00"),
        (-0.001, ".00"),
        (-12.3, "−12.30"),
        (None, "–"),
    ],
)
def test_shares_have_two_decimals(value, text):
    assert format_share(value) == text


def test_long_tokens_are_shortened():
    assert len(format_token("x" * 50)) == 12
    assert "\n" not in format_token("a\nb")


def test_the_page_has_all_parts_and_needs_nothing_else():
    page = render_page(make_data())
    assert page.count("<svg") == 2
    assert "Heads × positions" in page and "Pairs" in page and "a note" in page
    assert "small &amp; &lt;b&gt;" in page and "<x>" not in page
    assert "left out" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "Paths" not in page
    data = make_data()
    data["paths"] = [
        {
            **data["sweeps"]["heads"][0],
            "sender": "L0 h1",
            "receiver": "output",
            "through": "all",
        }
    ]
    assert "L0 h1 → output" in render_page(data)

"""Sizes, formats and characters of figures."""

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figure import (
    WEIGHT_COLORS,
    MissingGlyphWarning,
    get_colormap,
    parse_length,
)
from neural.report.token_text import format_token
from tests.report_runs import write_run


@pytest.mark.parametrize(
    ("text", "points"),
    [("3.25in", 234), ("2.54cm", 72), ("25.4 mm", 72), ("240pt", 240), (2, 144), ("4", 288)],
)
def test_lengths_have_units(text, points):
    assert parse_length(text) == pytest.approx(points)


@pytest.mark.parametrize("text", ["wide", "3.25 miles", "-3in", "0.5in", "41in", "nan", ""])
def test_other_lengths_are_refused_with_an_example(text):
    with pytest.raises(FigureError, match=r"is no size of a figure.*such as 3\.25in"):
        parse_length(text)


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path):
    figure = neural.figure(write_run(tmp_path, layers=1, heads=1, snapshots=1), "heads")
    with pytest.raises(FigureError, match=r"written as svg, pdf, png; name it fig\.svg"):
        figure.save("fig.jpeg")
    assert "heads of six at step 0" in repr(figure)
    assert "<svg" in figure._repr_svg_()


def test_characters_that_the_font_lacks_are_named_and_kept_in_svg(tmp_path):
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    capture = neural.watch(encoder, torch.randn(1, 3, 8), labels=["中", "b", "c"])
    figure = neural.figure(capture, "head")
    assert "中" in figure.save(tmp_path / "head.svg").read_text(encoding="utf-8")
    with pytest.warns(MissingGlyphWarning, match="the font has no 中"):
        figure.save(tmp_path / "head.png")


def test_weights_get_darker_also_in_grey():
    colors = np.array(get_colormap()(np.linspace(0, 1, 64)))[:, :3]
    luminance = colors @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) < 0).all()
    assert WEIGHT_COLORS[0] == "#ffffff"


@pytest.mark.parametrize(
    ("token", "shown"),
    [(" a", "␣a"), ("\n", "⏎"), ("", "∅"), ("\t", "⇥"), ("a" * 20, "a" * 15 + "…")],
)
def test_white_space_in_tokens_is_visible(token, shown):
    assert format_token(token) == shown

"""Tables and numbers in terminal text."""

import math
import shlex
import time

import click
import numpy as np
import pytest

from neural.cli._formatting import (
    draw_plot,
    format_number,
    format_scores,
    format_table,
    print_section,
)
from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.core.platform_support import path_argument
from neural.stats.comparisons import format_comparison
from neural.stats.estimate import Estimate


def test_columns_are_aligned_and_lines_have_no_trailing_spaces():
    rows = [("name", "value", ""), ("a", "1.5", "left"), ("longer", "10", "")]
    assert format_table(rows, right_aligned=(1,)) == [
        "  name    value",
        "  a         1.5  left",
        "  longer     10",
    ]


def test_a_table_without_rows_has_no_lines():
    assert format_table([]) == []


def test_colours_do_not_count_as_width(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")  # click.echo removes colours, not the table
    rows = [(click.style("ok", fg="green"), "x"), ("broken", "y")]
    first, second = format_table(rows, indent="")
    assert "\x1b[32m" in first
    assert click.unstyle(first) == "ok      x"
    assert second == "broken  y"


def test_a_colour_ends_with_its_cell():
    (line,) = format_table([("\x1b[31mred", "plain")], indent="")
    assert line == "\x1b[31mred\x1b[0m  plain"


def test_a_table_of_ten_thousand_rows_takes_less_than_two_seconds():
    rows = [(f"run-{row}", click.style("finished", fg="green"), str(row)) for row in range(10_000)]
    started = time.process_time()
    assert len(format_table(rows, right_aligned=(2,))) == 10_000
    assert time.process_time() - started < 2


def test_the_axis_of_a_constant_curve_has_one_value():
    lines = draw_plot((np.arange(3), np.full(3, 0.8)), {}, columns=20)
    assert [line.split("┤")[0].strip() for line in lines[:8]] == [*[""] * 7, "0.8"]


def test_long_cells_are_neither_wrapped_nor_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    cell = "word " * 60 + "end"
    assert format_table([("a", cell)], indent="") == [f"a  {cell}"]


def test_control_characters_and_markup_are_text():
    assert format_table([("[bold]\x1b[2Ja\nb :smile:",)], indent="") == [
        "[bold]\N{REPLACEMENT CHARACTER}[2Ja b :smile:"
    ]


def test_wide_characters_take_two_columns():
    assert format_table([("日本", "x"), ("abcd", "y")], indent="") == ["日本  x", "abcd  y"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (0.0, "0"), (0.12344, "0.1234"), (1e-5, "1.00e-05")],
)
def test_numbers_have_four_digits(value, text):
    assert format_number(value) == text


def test_a_difference_names_its_verdict_and_interval():
    estimate = Estimate(value=0.12, low=0.03, high=0.21, n=5)
    assert format_comparison(estimate, "worse") == "worse +0.12 (+0.03 … +0.21)"
    assert format_comparison(Estimate(0.12, n=1), "undecided") == "undecided (1 shared seed)"
    assert format_comparison(Estimate(0.12, n=2), "undecided") == "undecided +0.12 (2 shared seeds)"
    assert format_comparison(Estimate(0.12, n=5), "better") == "better +0.12 in each of 5 seeds"
    assert format_comparison(Estimate(math.inf, n=5), "worse") == "worse, seeds failed"


def test_a_long_text_loses_its_middle():
    assert shorten("a rather long\nline of text", 11) == "a rath…text"


def test_a_section_prints_no_control_characters_of_its_texts(capsys):
    print_section(
        PageSection(title="a\x1b[2Jb", text="c\x07\nd\u2028e", table_rows=[("f\x1b]", 1)])
    )
    printed = capsys.readouterr().out
    assert "a�[2Jb" in printed and "  d�e" in printed
    assert not set("\x1b\x07\u2028") & set(printed)


def test_a_path_with_a_space_is_one_argument_of_a_printed_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my runs" / "tiny"
    assert shlex.split(f"neural show {path_argument(path)}") == ["neural", "show", "my runs/tiny"]


def test_a_line_has_three_scores_and_says_how_many_more_there_are():
    scores = {f"valid/{name}": 0.5 for name in "abcde"}
    assert format_scores(scores) == "valid/a 0.5  valid/b 0.5  valid/c 0.5  and 2 more"
    assert format_scores({"valid/loss": 1.0, "valid/standard_error": 0.1}) == "valid/loss 1"

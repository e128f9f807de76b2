"""Diagnostics as the user reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.diagnostics import WIDEST, Diagnostic, Findings, Label, Source, Where, render


def place(text: str, part: str) -> Where:
    start = text.index(part)
    return Where(start, start + len(part))


def shown(text: str, part: str, *, labels: dict[str, str] | None = None, helps: tuple = (), code: str = "E0203") -> str:
    marks = tuple(Label(place(text, where), words) for where, words in (labels or {}).items())
    one = Diagnostic(code=code, message="wrong", where=place(text, part), labels=marks, helps=helps)
    return render(one, Source("net.neural", text))


def test_the_example_of_the_style_guide():
    text = "\n" * 4 + "    TransformerEncoder(num_heads=7, d_model=512, dff=2048)\n"
    one = Diagnostic(
        code="E0203", message="`num_heads` must divide `d_model`", where=place(text, "num_heads=7"),
        labels=(Label(place(text, "d_model=512"), "512 = 7 × 73 + 1"),),
        helps=("8 heads give a head width of 64, the usual size",),
    )  # fmt: skip
    assert render(one, Source("bert.neural", text)) == (
        "error[E0203]: `num_heads` must divide `d_model`\n"
        "  --> bert.neural:5:24\n"
        " 5 |     TransformerEncoder(num_heads=7, d_model=512, dff=2048)\n"
        "   |                        ^^^^^^^^^^^  ----------- 512 = 7 × 73 + 1\n"
        "   = help: 8 heads give a head width of 64, the usual size"
    )


def test_two_labels_on_two_lines_stand_under_their_lines():
    text = "first: 1\nmiddle: 2\nfirst: 3\n"
    one = Diagnostic(
        code="E0402", message="given twice", where=Where(text.rindex("first"), text.rindex("first") + 5),
        labels=(Label(Where(0, 5), "first here"), Label(place(text, "middle"), "and this")),
    )  # fmt: skip
    assert render(one, Source("net.neural", text)).splitlines()[1:] == [
        "  --> net.neural:3:1",
        " 3 | first: 3",
        "   | ^^^^^",
        " 1 | first: 1",
        "   | ----- first here",
        " 2 | middle: 2",
        "   | ------ and this",
    ]


def test_the_margin_is_as_wide_as_the_largest_line_number():
    text = "a\n" * 99 + "Dence(5)\n"
    lines = shown(text, "Dence", labels={"a": "one"}, helps=("x",)).splitlines()
    assert lines[2:] == [" 100 | Dence(5)", "     | ^^^^^", "   1 | a", "     | - one", "     = help: x"]


def test_tabs_keep_the_marks_in_their_place():
    lines = shown("\tDense(units=\tx)", "x").splitlines()
    assert lines[-1].index("^") == lines[-2].index("x")
    assert "\t" not in "".join(lines)


def test_wide_letters_take_two_columns():
    lines = shown('data: "日本", x', "x").splitlines()
    assert lines[-2] == ' 1 | data: "日本", x'
    assert lines[-1] == "   |" + " " * len(' data: "xxxx", ') + "^"
    lines = shown('data: "日本"', "日本").splitlines()
    assert lines[-1].count("^") == 4


def test_a_long_line_is_cut_around_the_place():
    text = "x" * 5000 + " HERE " + "y" * 5000
    lines = shown(text, "HERE").splitlines()
    assert len(lines[-2]) <= WIDEST + 10
    start = lines[-1].index("^")
    assert lines[-2][start : start + 4] == "HERE"
    assert lines[1].endswith(":1:5002")


def test_a_mark_past_the_cut_is_no_longer_than_the_line():
    lines = shown("z" * 10_000, "z" * 10_000).splitlines()
    assert len(lines[-1]) <= WIDEST + 10


def test_unprintable_letters_are_replaced():
    assert "\x1b" not in shown("Dense(\x1b[31m)", "Dense")


def test_a_place_at_the_very_end_is_shown():
    one = Diagnostic(code="E0101", message="unclosed", where=Where(9, 9))
    lines = render(one, Source("net.neural", "Dense(10,")).splitlines()
    assert lines[1:] == ["  --> net.neural:1:10", " 1 | Dense(10,", "   |          ^"]


def test_an_empty_text_has_a_place():
    one = Diagnostic(code="E0113", message="nothing here", where=Where(0, 0))
    lines = render(one, Source("net.neural", "")).splitlines()
    assert lines == ["error[E0113]: nothing here", "  --> net.neural:1:1", " 1 |", "   | ^"]


def test_windows_line_ends_are_not_part_of_a_line():
    source = Source("net.neural", "one\r\ntwo\r\n")
    assert [source.line(1), source.line(2), source.line(3)] == ["one", "two", ""]
    assert source.place(5) == (2, 1)


@pytest.mark.parametrize(("code", "word"), [("E0203", "error"), ("W0601", "warning"), ("N0701", "note")])
def test_the_letter_of_the_code_is_the_severity(code, word):
    assert shown("Dense(5)", "Dense", code=code).startswith(f"{word}[{code}]: wrong")


def test_style_colours_pieces_and_changes_no_letter():
    one = Diagnostic(code="E0203", message="wrong", where=Where(0, 5), helps=("x",))
    source = Source("net.neural", "Dense(5)")
    coloured = render(one, source, style=lambda text, **how: f"<{text}>")
    assert coloured.replace("<", "").replace(">", "") == render(one, source).replace("-->", "--")


def test_the_same_thing_is_said_once():
    findings = Findings()
    for _ in range(3):
        findings.say("E0203", "wrong", Where(0, 5))
    findings.say("E0203", "wrong", Where(6, 7))
    findings.say("N0701", "by the way", Where(0, 5), helps=[None, "x"])
    assert len(findings.items) == 3
    assert len(findings.mistakes) == 2
    assert findings.items[-1].helps == ("x",)


def test_nobody_reads_more_than_so_many_mistakes():
    findings = Findings(most=5)
    for index in range(50):
        findings.say("E0203", "wrong", Where(index, index + 1))
    assert len(findings.mistakes) == 5


@given(st.text(max_size=300), st.data())
def test_any_place_in_any_text_can_be_shown(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    label = Label(Where(0, min(3, len(text))), "here")
    one = Diagnostic(code="E0203", message="wrong", where=Where(start, end), labels=(label,))
    lines = render(one, Source("net.neural", text)).split("\n")
    assert lines[0] == "error[E0203]: wrong"
    assert any("^" in line for line in lines[2:]) or any("-" in line for line in lines[2:])

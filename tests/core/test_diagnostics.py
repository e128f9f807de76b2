"""Rendering and collecting of diagnostics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.diagnostics import (
    MAX_LINE_WIDTH,
    Diagnostic,
    DiagnosticCollector,
    Fix,
    Label,
    SourceSpan,
    SourceText,
    apply_fixes,
    render_diagnostic,
)


def span_of(text: str, part: str) -> SourceSpan:
    start = text.index(part)
    return SourceSpan(start, start + len(part))


def render(
    text: str,
    part: str,
    *,
    labels: dict[str, str] | None = None,
    helps: tuple = (),
    code: str = "E0203",
) -> str:
    marks = tuple(
        Label(span_of(text, part), label_text) for part, label_text in (labels or {}).items()
    )
    diagnostic = Diagnostic(
        code=code, message="wrong", span=span_of(text, part), labels=marks, helps=helps
    )
    return render_diagnostic(diagnostic, SourceText("net.neural", text))


def test_the_example_of_the_style_guide():
    text = "\n" * 4 + "    TransformerEncoder(num_heads=7, d_model=512, dff=2048)\n"
    diagnostic = Diagnostic(
        code="E0203",
        message="`num_heads` must divide `d_model`",
        span=span_of(text, "num_heads=7"),
        labels=(Label(span_of(text, "d_model=512"), "512 = 7 × 73 + 1"),),
        helps=("8 heads give a head width of 64, the usual size",),
    )
    assert render_diagnostic(diagnostic, SourceText("bert.neural", text)) == (
        "error[E0203]: `num_heads` must divide `d_model`\n"
        "  --> bert.neural:5:24\n"
        " 5 |     TransformerEncoder(num_heads=7, d_model=512, dff=2048)\n"
        "   |                        ^^^^^^^^^^^  ----------- 512 = 7 × 73 + 1\n"
        "   = help: 8 heads give a head width of 64, the usual size"
    )


def test_labels_are_shown_under_their_lines():
    text = "first: 1\nmiddle: 2\nfirst: 3\n"
    diagnostic = Diagnostic(
        code="E0402",
        message="given twice",
        span=SourceSpan(text.rindex("first"), text.rindex("first") + 5),
        labels=(Label(SourceSpan(0, 5), "first here"), Label(span_of(text, "middle"), "and this")),
    )
    assert render_diagnostic(diagnostic, SourceText("net.neural", text)).splitlines()[1:] == [
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
    lines = render(text, "Dence", labels={"a": "one"}, helps=("x",)).splitlines()
    assert lines[2:] == [
        " 100 | Dence(5)",
        "     | ^^^^^",
        "   1 | a",
        "     | - one",
        "     = help: x",
    ]


def test_tabs_do_not_shift_the_marks():
    lines = render("\tDense(units=\tx)", "x").splitlines()
    assert lines[-1].index("^") == lines[-2].index("x")
    assert "\t" not in "".join(lines)


def test_wide_characters_take_two_columns():
    lines = render('data: "日本", x', "x").splitlines()
    assert lines[-2] == ' 1 | data: "日本", x'
    assert lines[-1] == "   |" + " " * len(' data: "xxxx", ') + "^"
    lines = render('data: "日本"', "日本").splitlines()
    assert lines[-1].count("^") == 4


def test_a_long_line_is_cut_around_the_span():
    text = "x" * 5000 + " HERE " + "y" * 5000
    lines = render(text, "HERE").splitlines()
    assert len(lines[-2]) <= MAX_LINE_WIDTH + 10
    start = lines[-1].index("^")
    assert lines[-2][start : start + 4] == "HERE"
    assert lines[1].endswith(":1:5002")


def test_a_mark_past_the_cut_is_no_longer_than_the_line():
    lines = render("z" * 10_000, "z" * 10_000).splitlines()
    assert len(lines[-1]) <= MAX_LINE_WIDTH + 10


def test_unprintable_characters_are_replaced():
    assert "\x1b" not in render("Dense(\x1b[31m)", "Dense")


def test_a_span_at_the_end_is_shown():
    diagnostic = Diagnostic(code="E0101", message="unclosed", span=SourceSpan(9, 9))
    lines = render_diagnostic(diagnostic, SourceText("net.neural", "Dense(10,")).splitlines()
    assert lines[1:] == ["  --> net.neural:1:10", " 1 | Dense(10,", "   |          ^"]


def test_an_empty_text_can_be_marked():
    diagnostic = Diagnostic(code="E0113", message="nothing here", span=SourceSpan(0, 0))
    lines = render_diagnostic(diagnostic, SourceText("net.neural", "")).splitlines()
    assert lines == ["error[E0113]: nothing here", "  --> net.neural:1:1", " 1 |", "   | ^"]


def test_windows_line_endings_are_not_part_of_a_line():
    source = SourceText("net.neural", "one\r\ntwo\r\n")
    assert [source.get_line(1), source.get_line(2), source.get_line(3)] == ["one", "two", ""]
    assert source.line_and_column(5) == (2, 1)


@pytest.mark.parametrize(
    ("code", "word"), [("E0203", "error"), ("W0601", "warning"), ("N0701", "note")]
)
def test_the_letter_of_the_code_is_the_severity(code, word):
    assert render("Dense(5)", "Dense", code=code).startswith(f"{word}[{code}]: wrong")


def test_style_changes_no_character():
    diagnostic = Diagnostic(code="E0203", message="wrong", span=SourceSpan(0, 5), helps=("x",))
    source = SourceText("net.neural", "Dense(5)")
    coloured = render_diagnostic(diagnostic, source, style=lambda text, **options: f"<{text}>")
    assert coloured.replace("<", "").replace(">", "") == render_diagnostic(
        diagnostic, source
    ).replace("-->", "--")


def test_a_repeated_diagnostic_is_collected_once():
    collector = DiagnosticCollector()
    for _ in range(3):
        collector.add("E0203", "wrong", SourceSpan(0, 5))
    collector.add("E0203", "wrong", SourceSpan(6, 7))
    collector.add("N0701", "by the way", SourceSpan(0, 5), helps=[None, "x"])
    assert len(collector.items) == 3
    assert len(collector.errors) == 2
    assert collector.items[-1].helps == ("x",)


def test_the_number_of_errors_is_limited():
    collector = DiagnosticCollector(max_per_severity=5)
    for index in range(50):
        collector.add("E0203", "wrong", SourceSpan(index, index + 1))
    assert len(collector.errors) == 5


@given(st.text(max_size=300), st.data())
def test_any_span_of_any_text_can_be_rendered(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    label = Label(SourceSpan(0, min(3, len(text))), "here")
    diagnostic = Diagnostic(
        code="E0203", message="wrong", span=SourceSpan(start, end), labels=(label,)
    )
    lines = render_diagnostic(diagnostic, SourceText("net.neural", text)).split("\n")
    assert lines[0] == "error[E0203]: wrong"
    assert any("^" in line for line in lines[2:]) or any("-" in line for line in lines[2:])


def make_fix(text: str, part: str, replacement: str, *more: Fix) -> Diagnostic:
    """A diagnostic whose fix replaces a part of the text."""
    span = span_of(text, part)
    return Diagnostic(
        code="E0201", message=f"not {part}", span=span, fix=Fix(span, replacement, more)
    )


def test_all_fixes_that_do_not_overlap_are_applied():
    text = "one two three"
    fixes = [make_fix(text, "one", "1"), make_fix(text, "three", "3")]
    assert apply_fixes(text, fixes) == ("1 two 3", fixes)


def test_a_fix_may_have_several_edits():
    text = "[one, two]"
    bracket = Fix(span_of(text, "]"), "")
    comma = Fix(span_of(text, ","), "")
    assert apply_fixes(text, [make_fix(text, "[", "", comma, bracket)])[0] == "one two"


def test_of_overlapping_fixes_the_larger_one_is_applied():
    text = "call(argument)"
    inner, outer = make_fix(text, "argument", "value"), make_fix(text, text, "other(value)")
    for fixes in ([inner, outer], [outer, inner]):
        changed, applied = apply_fixes(text, fixes)
        assert changed == "other(value)"
        assert set(map(id, applied)) == {id(inner), id(outer)}


def test_of_equally_large_fixes_the_later_one_is_applied():
    text = "relu"
    assert apply_fixes(text, [make_fix(text, text, "a"), make_fix(text, text, "b")])[0] == "b"


def test_a_fix_that_overlaps_in_part_waits_for_the_next_pass():
    text = "one two three"
    first = make_fix(text, "one two", "1 2")
    second = make_fix(text, "three", "3", Fix(span_of(text, "two"), "zwei"))
    assert apply_fixes(text, [first, second])[0] == "one zwei 3"


def test_an_insertion_beside_a_replacement_is_applied():
    text = "Dense(5),"
    insertion = Diagnostic(
        code="E0105", message="m", span=SourceSpan(0, 1), fix=Fix(SourceSpan(8, 8), " * 6")
    )
    assert apply_fixes(text, [insertion, make_fix(text, ",", "")])[0] == "Dense(5) * 6"


def test_a_line_that_a_fix_empties_is_removed():
    text = "layers:\n  one\n  two\n"
    assert apply_fixes(text, [make_fix(text, "one", "")])[0] == "layers:\n  two\n"
    assert apply_fixes("a\n  b", [make_fix("a\n  b", "b", "")])[0] == "a"
    assert apply_fixes("  - one", [make_fix("  - one", "-", "")])[0] == "  one"


def test_without_fixes_the_text_stays():
    diagnostic = Diagnostic(code="E0201", message="m", span=SourceSpan(0, 1))
    assert apply_fixes("text", [diagnostic]) == ("text", [])

"""Structure of plain text: what is a heading and what only looks like one, turns, code, tables."""

import numpy as np
import pytest

from neural.tasks.segmentation.structure import parse_structure

PROSE = (
    "This is a paragraph of prose, which is long enough to be one.\n"
    "It has two lines, and it ends with a full stop.\n"
)


def parse(text, unit="sentences"):
    return parse_structure(text, unit, "plain")


def headings(text):
    structure = parse(text)
    rows = np.flatnonzero(structure.layout.heading_level)
    return [structure.elements[row] for row in rows]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("The title\n=========", "The title"),
        ("=====\nTitle\n=====", "Title"),
        ("2.1 Methods", "2.1 Methods"),
        ("Chapter 7", "Chapter 7"),
        ("CHAPTER XII. The Storm", "CHAPTER XII. The Storm"),
        ("Part Two: Night", "Part Two: Night"),
        ("Appendix A", "Appendix A"),
        ("INTRODUCTION", "INTRODUCTION"),
        ("Early Life and Work", "Early Life and Work"),
        ("Getting started", "Getting started"),
        ("What is a heading?", "What is a heading?"),
    ],
)
def test_a_heading_is_found(heading, title):
    assert headings(f"{PROSE}\n{heading}\n\n{PROSE}") == [title]


@pytest.mark.parametrize(
    "lines",
    [
        "“Go away!”",
        "Yours sincerely,",
        "a line in small letters",
        "Figure 3 The bridge in winter",
        "12 January 1999",
        "It was over.",
        "- an item",
        "* * *",
    ],
)
def test_a_short_line_that_is_no_heading(lines):
    assert headings(f"{PROSE}\n{lines}\n\n{PROSE}") == []


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red\n\nViolets are blue\n\nSugar is sweet\n\nAnd so are you\n",
        "John Smith\n\n12 High Street\n\nNewtown\n\nDear Sir,\n\n" + PROSE,
        "1. Take the bread\n\n2. Cut the bread\n\n3. Eat the bread\n\n" + PROSE,
        "".join(f"HAMLET\n\nI say line {number} of the play, my lord.\n\n" for number in range(9)),
    ],
)
def test_verses_addresses_lists_and_speakers_are_no_headings(text):
    assert headings(text) == []


def test_numbered_headings_with_text_between_them():
    text = f"1. Aims\n\n{PROSE}\n2. Means\n\n{PROSE}\n2.1 First\n\n{PROSE}\n3. Ends\n\n{PROSE}"
    structure = parse(text)
    assert structure.layout.heading_level[structure.layout.heading_level > 0].tolist() == [
        1,
        1,
        2,
        1,
    ]


def test_levels_of_underlines_are_in_order_of_use():
    text = "Top\n===\n\nOne\n---\n\nx y z\n\nTwo\n---\n\nDeep\n~~~~\n\nx y z\n"
    levels = parse(text).layout.heading_level
    assert levels[levels > 0].tolist() == [1, 2, 2, 3]


def test_the_headings_of_a_man_page():
    text = "NAME\n       ls - list files\n\nSYNOPSIS\n       ls [OPTION]... [FILE]...\n"
    assert headings(text) == ["NAME", "SYNOPSIS"]


@pytest.mark.parametrize("rule", ["***", "* * *", "-----", "#", "~ ~ ~", "⁂"])
def test_a_scene_break(rule):
    structure = parse(f"One is here.\n\n{rule}\n\nTwo is there.\n")
    assert structure.elements == ["One is here.", "Two is there."]
    assert structure.layout.follows_break.tolist() == [False, True]


def test_a_page_break():
    structure = parse("One is here.\n\fTwo is there.\n")
    assert structure.layout.follows_break.tolist() == [False, True]


@pytest.mark.parametrize(
    "line", ["{name}: hello there", "<{name}> hello there", "{name} (laughs): ho", "**{name}:** ho"]
)
def test_turns_of_two_speakers(line):
    names = ["Ann", "Bob", "Ann", "Ann", "Bob", "Ann"]
    structure = parse("\n".join(line.format(name=name) for name in names))
    assert structure.layout.begins_turn.tolist() == [True, True, True, False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        "Note: one\nWarning: two\nNote: three\nWarning: four\n",
        "Name: x\nBorn: y\nDied: z\nPlace: w\n",
        "Ann: hello there\n\n" + PROSE,
    ],
)
def test_labels_are_no_turns(text):
    assert not parse(text).layout.begins_turn.any()


def test_code_after_two_colons_is_one_element():
    text = "Call it::\n\n    first line\n\n    second line\n\nAnd so on.\n"
    structure = parse(text)
    assert structure.layout.is_code.tolist() == [False, True, False]
    assert structure.elements[1] == "first line\n\n    second line"


def test_an_indented_quote_is_not_code():
    assert not parse(f"{PROSE}\n     To be or not to be,\n     that is it.\n").layout.is_code.any()


@pytest.mark.parametrize(
    "table",
    [
        "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+",
        "===  ===\na    b\n===  ===\n1    2\n\n3    4\n===  ===",
        "a\tb\n1\t2\n3\t4",
    ],
)
def test_a_table_is_one_element(table):
    structure = parse(f"Text is here.\n\n{table}\n\nMore is here.\n")
    assert structure.layout.is_table.tolist() == [False, True, False]
    assert structure.elements[1] == table


def test_paragraphs_are_between_blank_lines():
    assert parse("One.\nTwo\n- three\n\nFour.\n", "paragraphs").elements == [
        "One.\nTwo\n- three",
        "Four.",
    ]

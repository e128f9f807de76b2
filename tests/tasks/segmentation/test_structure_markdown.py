"""Structure of Markdown: headings, fences, lists, quotes, tables, front matter, comments."""

import numpy as np
import pytest

from neural.tasks.segmentation.structure import parse_structure


def parse(text):
    return parse_structure(text, "sentences", "markdown")


def headings(text):
    structure = parse(text)
    return [
        (int(level), element)
        for level, element in zip(structure.layout.heading_level, structure.elements, strict=True)
        if level
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One #\n\n### Three\n", [(1, "One"), (3, "Three")]),
        ("Title\n=====\n\nPart\n---\ntext\n", [(1, "Title"), (2, "Part")]),
        ("> ## Quoted\n> text\n", [(2, "Quoted")]),
        ("<h1 align='center'>Logo</h1>\n\ntext\n", [(1, "Logo")]),
        ("## [Link](http://example.org) here\n", [(2, "Link                      here")]),
        ("#no\n\n####### no\n\n    # no\n", []),
        ("- item\n---\ntext\n", []),
        ("text\n\n---\n\ntext\n", []),
        ("```\n# no\n", []),
        ("<!--\n# no\n-->\n", []),
        ("<pre>\n# no\n\n# no\n</pre>\n", []),
        ("---\ntitle: x\n# no\n---\n# Yes\n", [(1, "Yes")]),
        ("a | b\n--|--\n1 | 2\n", []),
    ],
)
def test_headings(text, expected):
    assert headings(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n\n```\nx\n```\nb\n", "```\nx\n```"),
        ("a\n\n````\n```\nx\n```\n````\nb\n", "````\n```\nx\n```\n````"),
        ("a\n\n~~~ py\n```\n~~~\nb\n", "~~~ py\n```\n~~~"),
        ("a\n\n```\nx\n\ny\n", "```\nx\n\ny"),
        ("- item\n\n  ```\n  x\n  ```\n", "```\n  x\n  ```"),
        ("> ```\n> x\n> ```\n\ntext\n", "```\n> x\n> ```"),
        ("text\n\n    x = 1\n\n    y = 2\n\ntext\n", "x = 1\n\n    y = 2"),
    ],
)
def test_code_is_one_element(text, code):
    structure = parse(text)
    rows = np.flatnonzero(structure.layout.is_code)
    source = [text[slice(*structure.offsets[row])].removeprefix("> ") for row in rows]
    assert source == [code]


def test_text_indented_below_a_list_item_is_not_code():
    assert not parse("1. item\n\n    more of it\n\n- x\n").layout.is_code.any()


def test_list_items_begin_elements():
    structure = parse("Intro:\n- one\n  more\n- two\n1. three\n")
    assert structure.elements == ["Intro:", "- one\n  more", "- two", "1. three"]
    assert structure.layout.begins_list_item.tolist() == [False, True, True, True]
    paragraphs = parse_structure("Intro:\n- one\n- two\n\n- three\n", "paragraphs", "markdown")
    assert paragraphs.elements == ["Intro:\n- one\n- two", "- three"]


def test_quote_marks_and_link_targets_are_no_text():
    structure = parse("> A quote goes\n> on. See [here](http://example.org/a.b).\n")
    assert [element.split() for element in structure.elements] == [
        ["A", "quote", "goes", "on."],
        ["See", "here", "."],
    ]


def test_front_matter_and_comments_belong_to_the_next_element():
    text = "---\ntitle: x\n---\n\n# Title\n\nOne.\n\n<!-- note -->\n\nTwo.\n"
    structure = parse(text)
    assert structure.elements == ["Title", "One.", "Two."]
    assert structure.offsets[0][0] == 0
    assert text[slice(*structure.offsets[2])].startswith("<!-- note")


def test_a_rule_belongs_to_the_element_before_it():
    text = "One.\n\n* * *\n\nTwo.\n"
    structure = parse(text)
    assert structure.elements == ["One.", "Two."]
    assert structure.layout.follows_break.tolist() == [False, True]
    assert text[slice(*structure.offsets[0])] == "One.\n\n* * *"


def test_a_table_ends_with_its_rows():
    structure = parse("Text\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |\n\nMore.\n")
    assert structure.layout.is_table.tolist() == [False, True, False]

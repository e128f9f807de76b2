"""Headings by independent parsers, and the scores of boundaries at them."""

import pytest
from authors_headings import (
    ParsedFile,
    join_sections,
    parse_html,
    parse_markdown,
    parse_plain,
    score_boundaries,
)

MARKDOWN = """---
title: header
---

# Top

## Directly below

Text one. More *text*.

<a name="x"></a>
## Second

```
# no heading
```

Underlined
----------

The [end](url).
"""
HTML = (
    "<html><head><title>T</title><style>h1 {}</style></head><body><h1>Top</h1><p>One &amp; two.</p>"
    "\n<div><h2>B <em>x</em></h2><p>Three <code>c</code>.</p><pre>x</pre></div>"
    "<h3>C</h3><h4>D</h4>Tail</body></html>"
)
PLAIN = """=====
Title
=====

Intro.

.. _label:

Section
=======

Body
of two lines.

Below
-----

Last.
"""


def windows_of(text, parsed):
    return [text[slice(*window)] for window in parsed.windows]


def test_markdown_headings_are_those_of_the_parser():
    parsed = parse_markdown(MARKDOWN)
    assert windows_of(MARKDOWN, parsed) == ['\n\n<a name="x"></a>\n## ', "\n\n"]
    assert [MARKDOWN[end:].split("\n")[0] for _, end in parsed.windows] == ["Second", "Underlined"]
    assert parsed.sections == [["Text one. More text."], [], ["The end."]]


def test_html_headings_are_those_of_the_parser():
    parsed = parse_html(HTML)
    assert windows_of(HTML, parsed) == ["</p>\n<div><h2>", "</pre></div><h3>"]
    assert parsed.sections == [["One & two."], ["Three c."], ["Tail"]]


def test_plain_headings_are_those_of_docutils():
    parsed = parse_plain(PLAIN)
    assert [PLAIN[end:].split("\n")[0] for _, end in parsed.windows] == ["Section", "Below"]
    assert parsed.sections == [["Intro."], ["Body of two lines."], ["Last."]]


def test_sections_are_joined_by_spaces():
    text, windows = join_sections([["One.", "Two."], [], ["Three."]])
    assert text == "One. Two. Three."
    assert windows == [(10, 10)]


def test_a_heading_counts_once_and_every_other_boundary_is_wrong():
    scores = score_boundaries([([5, 6, 40], [(4, 7), (20, 22)]), ([3], [(3, 3)])])
    assert scores["precision"] == 2 / 4 and scores["recall"] == 2 / 3
    assert scores["f1"] == pytest.approx(4 / 7)


def test_a_heading_before_any_text_is_no_boundary():
    parsed = ParsedFile()
    parsed.add_heading(0, 2)
    parsed.add_text("a")
    assert parsed.windows == [] and parsed.sections == [["a"]]

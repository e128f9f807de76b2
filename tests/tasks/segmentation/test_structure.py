"""Structure of texts: spans tile the text, layout of the usual kinds of documents, guesses."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.structure import guess_markup, parse_structure

MARKUPS = ("auto", "plain", "markdown", "html")
UNITS = ("sentences", "lines", "paragraphs")
SUBJECTS = ("Bees", "Volcanoes", "Chess", "Bread", "Glaciers", "Violins")
PARAGRAPHS = [
    f"{name} are a subject of this text. There is much to say about them. Not all of it is known. "
    "The rest is told elsewhere."
    for name in SUBJECTS
]
SNIPPETS = st.sampled_from(
    [
        *("\n", "\n\n", "\r\n", "\r", "\f", "\x85", "\u2028", " ", "    ", "\t", "\xa0", "\ufeff"),
        *("Word ", "word word word. ", "A. ", "世界。", "é", "😀", "\ud800", "\0", "\\", "_", "I"),
        *("# ", "## H\n", "\n===\n", "\n---\n", "***", "\n* * *\n", "- ", "1. ", "2.1 Methods\n\n"),
        *("```", "\n```\n", "~~~", "\n> ", ">", "|", "|a|b|\n", "\n|---|---|\n", "[x](y)", "]("),
        *("<p>", "</p>", "<h1>", "</h1>", "<h2 a='>'>", "<br>", "<hr/>", "<pre>", "</pre>", "<li>"),
        *(
            "<table>",
            "<td>",
            "</table>",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "<",
            "&amp;",
            "&lt",
        ),
        *("<b>", "</b>", '"', "'", '<div class="', "<title>", "<svg>", "key: v\n", "---\nkey: v\n"),
        *("Alice: hi\n", "Bob: yo\n", "[10:32] Bob: x\n", "<bob> ", "::\n\n    x = 1\n"),
        *("CHAPTER ONE\n\n", "\n\nTitle Here\n\n", "II\n\n", "+--+--+\n", "== ==\n"),
    ]
)
TEXTS = st.one_of(st.lists(SNIPPETS, max_size=40).map("".join), st.text(max_size=60))


def check_spans(text, structure):
    """Spans are in order, not empty, and only white space is between them."""
    end = 0
    for (start, stop), element in zip(structure.offsets, structure.elements, strict=True):
        assert end <= start < stop
        assert not text[end:start].removeprefix("\ufeff" if end == 0 else "").strip()
        assert element and element == element.strip()
        end = stop
    assert not text[end:].removeprefix("\ufeff" if end == 0 else "").strip()
    assert len(structure.layout) == len(structure.elements)


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_the_spans_of_any_text_tile_it(unit, markup, text):
    check_spans(text, parse_structure(text, unit, markup))


@pytest.mark.parametrize("markup", MARKUPS)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS, seed=st.integers(0, 9))
def test_segments_of_any_segmentation_join_to_the_text(markup, text, seed):
    if not parse_structure(text).elements:
        return
    document = SegmentationDocument.from_text(text, markup=markup)
    spans = document.segment_spans(np.random.default_rng(seed).random(len(document)) < 0.5)
    assert "".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize(
    "snippet",
    [
        *(
            "<",
            "#",
            "# ",
            "`",
            "```\n",
            "~",
            "|",
            "|a|b|\n",
            " a ",
            ">",
            "> ",
            "<!--",
            '<a "',
            "<p>",
        ),
        *("<table>", "<script>", "<svg>", "&", "[", "](", "- ", "    a\n\n", "==\n", "***\n", "\r"),
        *("A: b\nB: c\n", "I. A\n\n", "A B\n\n", "word ", "世", "a::\n\n  b\n", "[10:32] Bob: x\n"),
    ],
)
@pytest.mark.parametrize("markup", ["plain", "markdown", "html"])
def test_the_time_is_linear_in_the_text(snippet, markup):
    def measure_seconds(characters):
        text = snippet * (characters // len(snippet))
        start = time.process_time()
        parse_structure(text, "sentences", markup)
        return time.process_time() - start

    # 8 times as long a text takes 8 times as long; 64 times if it were quadratic
    short_seconds = min(measure_seconds(10_000) for _ in range(2))
    long_seconds = min(measure_seconds(80_000) for _ in range(2))
    assert long_seconds < 30 * max(short_seconds, 0.005)


def test_six_paragraphs_of_four_sentences():
    text = "\n\n".join(PARAGRAPHS) + "\n"
    document = SegmentationDocument.from_text(text)
    assert len(document) == 24
    assert np.flatnonzero(document.layout.blank_lines).tolist() == [4, 8, 12, 16, 20]
    assert document.layout.can_begin.all() and not document.layout.heading_level.any()
    assert list(SegmentationDocument.from_text(text, unit="paragraphs").elements) == PARAGRAPHS


def test_markdown_with_three_sections():
    text = "".join(
        f"## {name}\n\n{paragraph}\n\n"
        for name, paragraph in zip(SUBJECTS[:3], PARAGRAPHS, strict=False)
    )
    document = SegmentationDocument.from_text(text)
    headings = np.flatnonzero(document.layout.heading_level)
    assert [document.elements[index] for index in headings] == list(SUBJECTS[:3])
    assert document.layout.can_begin[headings].all()
    assert not document.layout.can_begin[headings + 1].any()
    starts = [text.index(f"## {name}") for name in SUBJECTS[:3]]
    assert [document.offsets[index][0] for index in headings] == starts


def test_a_readme_with_fences():
    text = (
        "# Tool\n\nA tool for lists. It is small.\n\n## Install\n\n```bash\n# not a heading\n"
        "pip install tool\n\ntool --help\n```\n\n## Use\n\nCall it:\n\n~~~~python\n"
        "## no heading\n~~~\nimport tool\n~~~~\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.\n"
    )
    document = SegmentationDocument.from_text(text)
    layout = document.layout
    assert [document.elements[index] for index in np.flatnonzero(layout.heading_level)] == [
        "Tool",
        "Install",
        "Use",
    ]
    code = [document.elements[index] for index in np.flatnonzero(layout.is_code)]
    assert code[0].startswith("```bash") and code[0].endswith("```")
    assert code[1].startswith("~~~~python") and code[1].endswith("~~~~") and len(code) == 2
    assert layout.is_table.sum() == 1


def test_a_transcript_without_punctuation_is_divided_into_windows():
    words = [f"word{number}" for number in range(1000)]
    document = SegmentationDocument.from_text(" ".join(words))
    counts = [len(element.split()) for element in document.elements]
    assert sum(counts) == 1000 and max(counts) <= 30 and min(counts) >= 10
    assert " ".join(document.elements).split() == words
    with_commas = SegmentationDocument.from_text("one two three four five six seven, " * 60)
    assert all(element.endswith(",") for element in with_commas.elements)


def test_a_text_without_white_space_is_divided_into_windows():
    lengths = [len(element) for element in SegmentationDocument.from_text("世" * 5000).elements]
    assert sum(lengths) == 5000 and max(lengths) <= 300 and min(lengths) >= 100
    comma = SegmentationDocument.from_text(("世" * 30 + "，") * 100)
    assert all(element.endswith("，") for element in comma.elements)


def test_a_chat_log_has_turns():
    text = "".join(
        f"[10:{minute:02}] {'Ann' if minute % 3 else 'Bob'}: this is what I think of it\n"
        for minute in range(12)
    )
    document = SegmentationDocument.from_text(text)
    assert len(document) == 12
    turns = np.flatnonzero(document.layout.begins_turn).tolist()
    assert turns == [0, 1, 3, 4, 6, 7, 9, 10]


def test_an_html_page():
    text = (
        "<!DOCTYPE html><html><head><title>Page</title><script>x = '<h1>no</h1>'</script></head>\n"
        "<body><h1>Caf&eacute;s &amp; bars</h1>\n<p>First <b>one</b>. Then another.</p>\n"
        "<!-- <h2>no</h2> --><h2>Prices</h2><table><tr><td>Tea</td><td>2</td></tr></table>\n"
        "<pre>a\n\n  b</pre><ul><li>Milk</li><li>Sugar</li></ul><hr><p>The&nbsp;end.</p></body>"
    )
    document = SegmentationDocument.from_text(text)
    layout = document.layout
    assert document.elements == (
        "Cafés & bars",
        "First one.",
        "Then another.",
        "Prices",
        "Tea 2",
        "a\n\n  b",
        "Milk",
        "Sugar",
        "The end.",
    )
    assert layout.heading_level.tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0]
    assert layout.is_table.tolist().index(True) == 4 and layout.is_code.tolist().index(True) == 5
    assert np.flatnonzero(layout.begins_list_item).tolist() == [6, 7]
    assert np.flatnonzero(layout.follows_break).tolist() == [8]
    assert [text[start:end] for start, end in document.offsets][6] == "<ul><li>Milk</li>"


def test_only_the_first_heading_of_a_run_can_begin_a_segment():
    document = SegmentationDocument.from_text("# A\n\n## B\n\nText here.\n\n## C\n\nMore.\n")
    assert document.layout.can_begin.tolist() == [True, False, False, True, False]


def test_no_segment_can_begin_inside_a_fence_of_lines():
    text = "Title\n=====\nOne.\nTwo.\n\n```\na\n\nb\n```\nThree.\n"
    document = SegmentationDocument.from_text(text, unit="lines", markup="markdown")
    assert document.elements == tuple(text.split())
    assert document.layout.can_begin.tolist() == [
        *(True, False, False, True),
        *(True, False, False, False),
        True,
    ]


def test_a_document_without_its_layout_keeps_its_elements():
    document = SegmentationDocument.from_text("# A\n\nText.\n\n```\ncode\n```\n", markup="markdown")
    plain = document.without_layout()
    assert plain.layout is None
    assert plain.elements == document.elements and plain.offsets == document.offsets


def test_a_layout_of_another_length_is_refused():
    layout = SegmentationDocument.from_text("One. Two.").layout
    with pytest.raises(ValueError, match="x has 1 elements, but its layout has 2"):
        SegmentationDocument("x", ("a",), layout=layout)


def test_a_text_of_markup_only_is_one_element():
    document = SegmentationDocument.from_text("<!-- nothing -->", markup="html")
    assert document.elements == ("<!-- nothing -->",)


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("## One\n\nText.\n\n## Two\n\nText.\n", "markdown"),
        ("Use [this](https://example.org) or [that](docs/x.md).\n", "markdown"),
        ("# Title\n\nText.\n\n```\ncode\n```\n", "markdown"),
        ("# a comment\nimport os\n\n# another\nx = 1\n\n## more\ny = 2\n", "plain"),
        ("Plain text. It has no marks.\n\nSecond paragraph.\n", "plain"),
        ("A title\n=======\n\nPart\n~~~~\n\nText.\n\nPart\n~~~~\n\nText.\n", "plain"),
        ("<!doctype html><p>Hello", "html"),
        ("<div><p>One</p><p>Two</p></div>", "html"),
        ("If a < b and b > c, then so on. <none> of it.\n", "plain"),
    ],
)
def test_the_markup_is_guessed_from_the_text(text, markup):
    assert guess_markup(text) == markup


def test_a_known_suffix_decides_the_markup():
    assert guess_markup("No marks.", ".MD") == "markdown"
    assert guess_markup("## One\n\n## Two\n", ".py") == "plain"
    assert guess_markup("No marks.", ".html") == "html"
    assert guess_markup("No marks.", ".txt") == "plain"

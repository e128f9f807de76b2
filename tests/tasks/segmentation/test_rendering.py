"""Rendering documents in many styles: their parts are found again at the right places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.rendering import STYLES, render_document
from neural.tasks.segmentation.text_splitting import find_elements

WORDS = [f"word{letter}" for letter in "abcdefghijkl"]
NEVER_MISLED = [style for style in STYLES if style != "misleading"]
MARKED_STYLES = ["markdown", "html", "underlined", "numbered", "capitals", "titled"]


def make_parts(seed):
    rng = np.random.default_rng(seed)

    def sentence():
        return " ".join(rng.choice(WORDS, rng.integers(6, 20))).capitalize() + "."

    def paragraph():
        return " ".join(sentence() for _ in range(rng.integers(2, 6)))

    return [
        {
            "title": " ".join(rng.choice(WORDS, 3, replace=False)).title(),
            "level": int(rng.integers(1, 3)) if number else 1,
            "paragraphs": [paragraph() for _ in range(rng.integers(1, 4))],
        }
        for number in range(rng.integers(2, 7))
    ]


@pytest.mark.parametrize("style", NEVER_MISLED)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_sentences_and_boundaries_are_found_again(style, seed):
    parts = make_parts(seed)
    rendered = render_document("The Book of Things", parts, style, np.random.default_rng(seed))
    document = SegmentationDocument.from_text(rendered.text)
    starts = {start for start, _ in document.offsets}
    assert len(rendered.boundaries) == len(parts) - 1 and starts.issuperset(rendered.boundaries)
    elements = {" ".join(element.split()) for element in document.elements}
    for part in parts:
        for text in part["paragraphs"]:
            assert elements.issuperset(text[start:end] for start, end in find_elements(text))


@pytest.mark.parametrize("style", MARKED_STYLES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_all_headings_and_nothing_else_are_headings(style, seed):
    parts = make_parts(seed)
    rendered = render_document("The Book of Things", parts, style, np.random.default_rng(seed))
    document = SegmentationDocument.from_text(rendered.text)
    is_heading = document.layout.heading_level > 0
    is_boundary = rendered.mark_elements(document.offsets)
    assert is_heading[is_boundary].all() and document.layout.can_begin[is_boundary].all()
    # the title and the heading of the first part are no boundaries
    assert is_heading.sum() == is_boundary.sum() + 2


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_misleading_breaks_keep_the_words_and_the_places_of_the_parts(seed):
    parts = make_parts(seed)
    rng = np.random.default_rng(seed)
    rendered = render_document("Header", parts, "misleading", rng)
    words = [word for part in parts for text in part["paragraphs"] for word in text.split()]
    kept = [word for word in rendered.text.split() if word not in ("Header", "*")]
    assert kept == words
    for boundary, part in zip(rendered.boundaries, parts[1:], strict=True):
        assert rendered.text[boundary:].split()[0] == part["paragraphs"][0].split()[0]


def test_parts_without_titles_have_no_headings():
    parts = [{"title": "", "level": 1, "paragraphs": ["One is here. Two is."]}] * 3
    for style in STYLES:
        rendered = render_document(None, parts, style, np.random.default_rng(0))
        document = SegmentationDocument.from_text(rendered.text)
        assert not document.layout.heading_level.any(), style

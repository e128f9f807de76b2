"""Streams of texts: the same segments however the text arrives, within limits, nothing lost."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.errors import TaskError
from neural.tasks.segmentation import document_stream
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.document_stream import ParsingOptions, read_text_blocks
from neural.tasks.segmentation.pipeline import load_shipped_pipeline
from neural.tasks.segmentation.segment_stream import SegmentOptions, SegmentStream
from tests.tasks.segmentation.segmentations import quick_settings

SUBJECTS = ("harbour ship anchor sail", "engine piston valve oil", "bread flour oven yeast")


def write_prose(sections, seed=0):
    """Markdown with headings, paragraphs, lists, code and tables."""
    rng = random.Random(seed)
    parts = []
    for number in range(sections):
        words = SUBJECTS[number % 3].split()
        parts.append(f"## Section {number}\n\n")
        for _ in range(rng.randint(1, 3)):
            sentences = [
                f"The {rng.choice(words)} of the {rng.choice(words)} is {rng.randint(1, 99)}."
                for _ in range(rng.randint(1, 5))
            ]
            parts.append(" ".join(sentences) + "\n\n")
        if number % 4 == 1:
            parts.append("```\n# no heading\n\ncode = 1\n```\n\n")
        if number % 5 == 2:
            parts.append("| a | b |\n|---|---|\n| 1 | 2 |\n\n")
        if number % 6 == 3:
            parts.append("- one item\n- another item\n\n")
    return "".join(parts)


@pytest.fixture(scope="module")
def pipeline():
    return load_shipped_pipeline()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks and windows so small that a short text has many."""
    monkeypatch.setattr(document_stream, "WINDOW_ELEMENTS", 40)
    monkeypatch.setattr(document_stream, "CONTEXT_ELEMENTS", 8)
    monkeypatch.setattr(document_stream, "MAX_BLOCK_CHARACTERS", 700)


def stream(text, pipeline, sizes=None, **options):
    """Segments of a text that arrives in chunks of `sizes` characters."""
    chunks, start = [], 0
    for size in sizes or [len(text)]:
        chunks.append(text[start : start + size])
        start += size
    chunks.append(text[start:])
    return list(SegmentStream(chunks, "text", pipeline, SegmentOptions(**options)))


def count_quarters(text):
    """A tokenizer whose counts are not whole numbers."""
    return len(text) / 4 + 1


OPTIONS = [
    {},
    {"min_elements": 1},
    {"min_elements": 2, "max_elements": 6},
    {"max_tokens": 40},
    {"max_tokens": 60, "overlap": 12, "min_tokens": 20},
    {"max_tokens": 200, "tokenizer": "chars", "overlap": 0.2},
    {"max_tokens": 50, "tokenizer": count_quarters},
    {"unit": "paragraphs", "max_tokens": 80},
    {"unit": "lines", "threshold": 0.1},
    {"ignore_layout": True, "markup": "plain"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "none")
def test_chunks_of_any_size_give_the_segments_of_the_whole_text(pipeline, small_blocks, options):
    text = write_prose(40)
    whole = stream(text, pipeline, **options)
    assert "".join(text[segment.start : segment.end] for segment in whole) == text
    assert [segment.start for segment in whole[1:]] == [segment.end for segment in whole[:-1]]
    assert len(whole) > 3
    for seed in range(3):
        rng = random.Random(seed)
        sizes = [rng.choice([1, 7, 80, 1000]) for _ in range(200)]
        assert stream(text, pipeline, sizes, **options) == whole


@quick_settings
@given(
    st.text("ab .\n#`|-<p>中", max_size=400), st.integers(20, 90), st.randoms(use_true_random=False)
)
def test_blocks_of_any_text_tile_it_and_do_not_depend_on_chunks(text, size, rng):
    if not text.strip():
        return
    options = ParsingOptions(max_characters=size)

    def read(chunks):
        return list(read_text_blocks(chunks, "text", options))

    whole = read([text])
    assert "".join(table.text for table in whole) == text
    position = 0
    for table in whole:
        assert table.starts[0] == position
        assert len(table) == len(table.starts) == len(table.offsets) == len(table.layout)
        assert (np.diff(table.starts) > 0).all()
        position += len(table.text)
        assert table.end == position
    cuts = sorted(rng.randint(0, len(text)) for _ in range(5))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [table.text for table in read(chunks)] == [table.text for table in whole]
    assert [table.elements for table in read(chunks)] == [table.elements for table in whole]


def test_the_decoder_for_the_least_expected_pk_works_window_by_window(pipeline, small_blocks):
    text = write_prose(40)
    pipeline = replace(pipeline, decoder="expected_pk")
    whole = stream(text, pipeline)
    assert "".join(segment.text for segment in whole) == text
    assert stream(text, pipeline, [11] * 400) == whole
    assert len(whole) > 3
    assert stream(text, pipeline, threshold=1e-6) != whole, "a threshold selects the other decoder"


@pytest.mark.parametrize(
    "limits", [{}, {"min_elements": 1}, {"min_elements": 2, "max_elements": 9}]
)
def test_windows_are_decoded_as_one_sequence(pipeline, small_blocks, limits):
    """Decoding while the text is read finds the segmentation of all probabilities together."""
    pipeline = replace(pipeline, decoder="threshold", min_elements=3)
    blocks = []
    segments = list(
        SegmentStream(
            [write_prose(40)],
            "text",
            pipeline,
            SegmentOptions(**limits),
            on_block=blocks.append,
        )
    )
    assert len(blocks) > 3
    boundaries = pipeline.decode(
        np.concatenate([block.probabilities for block in blocks]),
        **limits,
        can_begin=np.concatenate([block.table.can_begin for block in blocks]),
    )
    assert [segment.first for segment in segments[1:]] == np.flatnonzero(boundaries).tolist()


def test_a_text_of_one_block_has_the_elements_of_a_document():
    text = write_prose(20)
    (table,) = read_text_blocks([text], "text", ParsingOptions())
    document = SegmentationDocument.from_text(text)
    assert table.elements == document.elements
    assert table.to_document("text").offsets == document.offsets
    assert list(table.starts) == [
        start for start, _ in document.segment_spans(np.ones(len(document), bool))
    ]


def test_blocks_are_cut_at_blank_lines_and_never_inside_code_or_tables():
    text = write_prose(60)
    tables = list(read_text_blocks([text], "text", ParsingOptions(max_characters=900)))
    assert len(tables) > 8
    for table in tables[1:]:
        assert text[: table.starts[0]].endswith("\n\n")
        assert table.text.count("```") in (0, 2, 4, 6)
    whole = SegmentationDocument.from_text(text, markup="markdown")
    assert tuple(element for table in tables for element in table.elements) == whole.elements


def test_a_code_fence_longer_than_the_largest_block_stays_code():
    lines = "".join(f"# line {number}\n" for number in range(900))
    text = f"# Title\n\nWords.\n\n```python\n{lines}```\n\nMore words.\n\n## Next\n\nThe end.\n"
    tables = list(
        read_text_blocks([text], "text", ParsingOptions(max_characters=600, markup="markdown"))
    )
    assert "".join(table.text for table in tables) == text
    headings = [
        element
        for table in tables
        for element, level in zip(table.elements, table.layout.heading_level, strict=True)
        if level
    ]
    assert headings == ["Title", "Next"]


def test_segments_come_before_the_text_ends(pipeline, small_blocks):
    text = write_prose(60)
    read = 0

    def chunks():
        nonlocal read
        for start in range(0, len(text), 100):
            read = start + 100
            yield text[start : start + 100]

    ends = []
    for segment in SegmentStream(chunks(), "text", pipeline, SegmentOptions(max_tokens=40)):
        ends.append(read - segment.end)
        assert read >= segment.end
    assert ends[0] < len(text) / 4


def test_memory_does_not_grow_with_the_text(pipeline, small_blocks):
    text = write_prose(150)
    options = SegmentOptions(max_tokens=40, overlap=5)
    segments = SegmentStream([text], "text", pipeline, options)
    kept = [segments._buffer.end - segments._buffer.start for _ in segments]
    assert max(kept[len(kept) // 2 :]) < len(text) / 2
    assert len(segments._elements._texts) < 80


def test_the_overlap_repeats_whole_elements_within_the_budget(pipeline):
    text = write_prose(30)
    segments = stream(text, pipeline, max_tokens=60, overlap=15, tokenizer="words")
    document = SegmentationDocument.from_text(text)
    starts = {start for start, _ in document.segment_spans(np.ones(len(document), bool))}
    assert segments[0].overlap_start == segments[0].start == 0
    lengths = []
    for segment in segments:
        assert segment.text == text[segment.overlap_start : segment.end]
        assert segment.tokens == len(segment.text.split()) <= 60
        overlap = text[segment.overlap_start : segment.start]
        assert len(overlap.split()) <= 15
        assert segment.overlap_start in starts
        lengths.append(len(overlap.split()))
    assert np.mean(lengths) > 5


def test_the_overlap_is_some_words_if_the_element_before_is_long(pipeline):
    text = "Here are many words in one sentence that goes on and on and on. " * 8
    segments = stream(text, pipeline, max_tokens=20, overlap=3, min_elements=1)
    assert all(len(text[s.overlap_start : s.start].split()) == 3 for s in segments[1:])


def test_the_title_is_the_heading(pipeline):
    text = write_prose(12)
    segments = stream(text, pipeline, max_tokens=60, min_elements=1)
    for segment in segments:
        if segment.text.startswith("## "):
            assert segment.title == segment.text.splitlines()[0].removeprefix("## ")


def test_a_divided_element_has_no_probability(pipeline):
    text = "```\n" + "line of code\n" * 40 + "```\n"
    segments = stream(text, pipeline, max_tokens=20, markup="markdown")
    assert "".join(segment.text for segment in segments) == text
    assert [segment.probability for segment in segments] == [None] * len(segments)
    assert {(segment.first, segment.last) for segment in segments} == {(0, 1)}
    assert segments[1].title == "line of code"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number, not 2.5"),
        ({"max_tokens": 5, "min_tokens": 6}, "min_tokens 6 is larger than max_tokens 5"),
        ({"max_tokens": 5, "overlap": 5}, "overlap 5 leaves no tokens of max_tokens 5"),
        ({"max_tokens": 9, "overlap": 5, "min_tokens": 6}, "min_tokens 6 is larger"),
        ({"overlap": 0.5}, "overlap 0.5 is a share of max_tokens, which is not set"),
        ({"overlap": -1}, "overlap must be a number of tokens"),
        ({"threshold": 1.0}, "threshold must be between 0 and 1"),
        ({"unit": "words"}, "unit 'words' is not one of"),
        ({"markup": "latex"}, "markup 'latex' is not one of auto, plain, markdown, html"),
    ],
)
def test_options_that_do_not_fit_are_errors(options, message):
    with pytest.raises(TaskError, match=message):
        SegmentOptions(**options)


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff \n"])
def test_a_text_without_words_is_an_error(pipeline, text):
    with pytest.raises(TaskError, match="text is empty: there is nothing to segment"):
        stream(text, pipeline)


@pytest.mark.parametrize(
    "text", ["word", "\ud800 lone surrogate", "\x00\x01 binary \x7f", "中" * 500, "a" * 3000]
)
def test_odd_texts_have_segments(pipeline, text):
    segments = stream(text, pipeline, max_tokens=50, tokenizer="chars")
    assert "".join(segment.text for segment in segments) == text.replace("\ud800", "?")
    assert max(segment.tokens for segment in segments) <= 50


def test_white_space_of_any_length_is_kept(pipeline, small_blocks):
    text = "\n" * 9000 + "One sentence." + " " * 9000 + "Another one.\n" + "\n" * 9000
    segments = stream(text, pipeline, max_tokens=4000, tokenizer="chars")
    assert "".join(segment.text for segment in segments) == text
    assert max(segment.tokens for segment in segments) <= 4000

"""Token budgets: never exceeded with any tokenizer, nothing lost, optimal against enumeration."""

import hashlib
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.errors import TaskError
from neural.tasks.segmentation import token_budget
from neural.tasks.segmentation.decoding import compute_gains
from neural.tasks.segmentation.text_buffer import TextBuffer
from neural.tasks.segmentation.token_budget import BoundedDecoder, ElementBlock, SegmentLimits
from neural.tasks.segmentation.token_counting import make_token_counter
from tests.tasks.segmentation.segmentations import quick_settings


def count_pairs(text):
    """Tokens of two characters, one more for every text: counts do not add up, but never fall."""
    return -(-len(text) // 2) + 1


def count_absurdly(text):
    """Any number from 0 to 9, without any rule."""
    return hashlib.sha256(text.encode()).digest()[0] % 10


TOKENIZERS = ["words", "chars", count_pairs, lambda text: list(text.encode()), count_absurdly]
ELEMENTS = st.lists(
    st.text("ab ,.\n中", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=7
)


@st.composite
def draw_documents(draw):
    """Texts of elements, their boundary probabilities, and where segments may begin."""
    elements = draw(ELEMENTS)
    count = len(elements)
    probabilities = draw(
        st.lists(st.sampled_from([0.05, 0.3, 0.5, 0.9]), min_size=count, max_size=count)
    )
    can_begin = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return elements, np.array(probabilities), np.array(can_begin)


def decode(document, tokenizer, sizes=(10**6,), **limits):
    """Segments of a document that is pushed in blocks of `sizes` elements."""
    elements, probabilities, can_begin = document
    edges = np.cumsum([0, *map(len, elements)])
    buffer = TextBuffer()
    decoder = BoundedDecoder(SegmentLimits(**limits), buffer, make_token_counter(tokenizer))
    segments, first = [], 0
    for size in sizes:
        last = min(first + size, len(elements))
        if first == last:
            break
        buffer.append("".join(elements[first:last]))
        segments += decoder.push(
            ElementBlock(
                starts=edges[first:last],
                end=int(edges[last]),
                probabilities=probabilities[first:last],
                can_begin=can_begin[first:last],
            )
        )
        first = last
    return segments + decoder.finish()


@quick_settings
@given(draw_documents(), st.sampled_from(TOKENIZERS), st.integers(1, 8), st.integers(0, 8))
def test_a_budget_is_never_exceeded_and_nothing_is_lost(document, tokenizer, largest, smallest):
    text = "".join(document[0])
    count = make_token_counter(tokenizer).count
    try:
        segments = decode(
            document, tokenizer, max_tokens=largest, min_tokens=min(smallest, largest)
        )
    except TaskError as error:
        assert "the character" in str(error)
        assert any(count(character) > largest for character in text)
        return
    assert "".join(text[segment.start : segment.end] for segment in segments) == text
    for segment in segments:
        assert segment.tokens == count(text[segment.start : segment.end]) <= largest


def enumerate_best(document, count, limits):
    """Best order value of all segmentations whose boundaries are between elements; None if none."""
    elements, probabilities, can_begin = document
    gains = compute_gains(probabilities, limits.get("threshold", 0.5))
    values = []
    for gaps in product((False, True), repeat=len(elements) - 1):
        starts = [0, *(index + 1 for index, is_cut in enumerate(gaps) if is_cut)]
        spans = list(pairwise([*starts, len(elements)]))
        tokens = [count("".join(elements[first:last])) for first, last in spans]
        lengths = [last - first for first, last in spans]
        if max(tokens) > limits["max_tokens"]:
            continue
        if max(lengths) > (limits.get("max_elements") or len(elements)):
            continue
        is_short = [
            size < limits.get("min_tokens", 0) or length < limits.get("min_elements", 1)
            for size, length in zip(tokens, lengths, strict=True)
        ]
        forbidden = sum(not can_begin[start] for start in starts[1:])
        values.append((forbidden, sum(is_short), -sum(gains[start] for start in starts[1:])))
    return min(values, default=None)


def rate(segments, document, limits):
    _, probabilities, can_begin = document
    gains = compute_gains(probabilities, limits.get("threshold", 0.5))
    starts = [segment.first for segment in segments[1:]]
    is_short = [
        segment.tokens < limits.get("min_tokens", 0)
        or segment.last - segment.first < limits.get("min_elements", 1)
        for segment in segments
    ]
    forbidden = sum(not can_begin[start] for start in starts)
    return forbidden, sum(is_short), -sum(gains[start] for start in starts)


@st.composite
def draw_limits(draw):
    largest = draw(st.integers(2, 30))
    limits = {"max_tokens": largest, "threshold": draw(st.sampled_from([0.2, 0.5]))}
    if draw(st.booleans()):
        limits["min_tokens"] = draw(st.integers(1, largest))
    if draw(st.booleans()):
        limits["max_elements"] = draw(st.integers(1, 5))
    if draw(st.booleans()):
        limits["min_elements"] = draw(st.integers(1, limits.get("max_elements", 5)))
    return limits


@quick_settings
@given(draw_documents(), st.sampled_from(["words", "chars", count_pairs]), draw_limits())
def test_no_segmentation_within_the_budget_is_better(document, tokenizer, limits):
    count = make_token_counter(tokenizer).count
    if any(count(element) > limits["max_tokens"] for element in document[0]):
        return  # elements are divided, which is not enumerated
    segments = decode(document, tokenizer, **limits)
    assert not any(segment.is_inside_element for segment in segments)
    expected = enumerate_best(document, count, limits)
    assert rate(segments, document, limits) == pytest.approx(expected, abs=1e-9)


@quick_settings
@given(
    draw_documents(),
    st.sampled_from(TOKENIZERS[:4]),
    draw_limits(),
    st.lists(st.integers(1, 3), min_size=7, max_size=7),
)
def test_blocks_give_the_same_segments_as_the_whole(document, tokenizer, limits, sizes):
    limits["max_tokens"] = max(limits["max_tokens"], 5)  # any character fits
    assert decode(document, tokenizer, sizes, **limits) == decode(document, tokenizer, **limits)


def make_long_document(seed, count=600):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, count)
    elements = [
        " ".join(["word"] * size) + ".\n"[: 1 + index % 2] + " " for index, size in enumerate(sizes)
    ]
    return elements, rng.random(count), rng.random(count) < 0.9


def count_subwords(text):
    """Like subwords: spaces are tokens only at the end, and two special tokens are added."""
    return len(text.split()) + (text != text.rstrip()) + text.count(".") + 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limits", [{"max_tokens": 128}, {"max_tokens": 100, "min_tokens": 40}])
def test_estimated_counts_give_the_best_segmentation_too(seed, limits, monkeypatch):
    document = make_long_document(seed)
    estimated = decode(document, count_subwords, **limits)
    monkeypatch.setattr(token_budget, "MAX_EXACT_UNITS", 10**9)
    exact = decode(document, count_subwords, **limits)
    assert max(segment.tokens for segment in estimated) <= limits["max_tokens"]
    assert estimated == exact


def test_few_spans_are_counted_if_counts_nearly_add_up():
    document = make_long_document(5, 2000)
    characters = 0

    def count(text):
        nonlocal characters
        characters += len(text)
        return count_subwords(text)

    decode(document, count, max_tokens=256)
    assert characters < 6 * len("".join(document[0]))


def test_counts_that_do_not_add_up_are_all_counted():
    """Squares: an estimate would be wrong by far."""
    document = make_long_document(1, 300)
    segments = decode(document, lambda text: (len(text) // 10) ** 2, max_tokens=2000)
    text = "".join(document[0])
    assert "".join(text[segment.start : segment.end] for segment in segments) == text
    assert max(segment.tokens for segment in segments) <= 2000
    assert np.mean([segment.tokens for segment in segments]) > 300


def test_a_text_that_repeats_itself_is_decoded_in_bounded_memory(monkeypatch):
    """Many segmentations are equally good: one of them becomes final."""
    monkeypatch.setattr(token_budget, "MAX_PENDING_UNITS", 64)
    count = 1000
    elements = ["five words are in this. "] * count
    document = (elements, np.full(count, 0.1), np.ones(count, bool))
    text = "".join(elements)
    buffer = TextBuffer()
    decoder = BoundedDecoder(SegmentLimits(max_tokens=33), buffer, make_token_counter("words"))
    segments = []
    for first in range(0, count, 50):
        buffer.append("".join(elements[first : first + 50]))
        segments += decoder.push(
            ElementBlock(
                starts=np.arange(first, first + 50) * len(elements[0]),
                end=(first + 50) * len(elements[0]),
                probabilities=document[1][first : first + 50],
                can_begin=document[2][first : first + 50],
            )
        )
        assert decoder._search.count - decoder._search.base <= 64 + 50
    segments += decoder.finish()
    assert "".join(text[segment.start : segment.end] for segment in segments) == text
    assert max(segment.tokens for segment in segments) == 30
    # the best one has as few segments as possible
    assert len(segments) - len(decode(document, "words", max_tokens=33)) <= 20


def test_a_long_element_is_divided_at_lines_then_stops_then_clauses_then_words_then_characters():
    def divide(element, largest):
        segments = decode(([element], np.zeros(1), np.ones(1, bool)), "chars", max_tokens=largest)
        return [element[segment.start : segment.end] for segment in segments]

    fence = "```\nfirst line\nsecond line\n```\n"
    assert divide(fence, 16) == ["```\nfirst line\n", "second line\n```\n"]
    assert divide("one, two. three, four five", 17) == ["one, two. ", "three, four five"]
    assert divide("at − 1 … 1, then", 13) == ["at − 1 … 1, ", "then"]
    assert divide("one, two three, four five", 16) == ["one, two three, ", "four five"]
    assert divide("alpha beta gamma", 12) == ["alpha ", "beta gamma"]
    assert divide("abcdefgh", 3) == ["ab", "cde", "fgh"]
    assert divide("ab cdefgh\nij k", 5) == ["ab cd", "efgh\n", "ij k"]


def test_divisions_are_after_lines_where_that_is_possible():
    text = "a b\ncd ef gh ij\nk l\nm n"
    segments = decode(([text], np.zeros(1), np.ones(1, bool)), "chars", max_tokens=10)
    assert [text[segment.start : segment.end] for segment in segments] == [
        "a b\n",
        "cd ef gh ",
        "ij\nk l\nm n",
    ]
    assert [segment.is_inside_element for segment in segments] == [False, True, True]


def test_a_heading_stays_with_what_follows_it():
    elements = ["aa bb. ", "# Title\n", "cc dd. ", "ee ff. "]
    document = (elements, np.array([0, 0.1, 0.9, 0.1]), np.array([True, True, False, True]))
    segments = decode(document, "words", max_tokens=4)
    assert [(segment.first, segment.last) for segment in segments] == [(0, 1), (1, 3), (3, 4)]


def test_a_character_larger_than_the_budget_is_an_error():
    document = (["日"], np.zeros(1), np.ones(1, bool))
    with pytest.raises(TaskError, match="max_tokens 2 is too small: the character '日' alone"):
        decode(document, lambda text: list(text.encode()), max_tokens=2)


def test_the_minimum_alone_is_kept_where_possible():
    document = (["a b. ", "c d. ", "e f. ", "g h."], np.full(4, 0.9), np.ones(4, bool))
    segments = decode(document, "words", min_tokens=3)
    assert [segment.tokens for segment in segments] == [4, 4]
    segments = decode(document, lambda text: len(text.split()) + 1, min_tokens=4)
    assert [segment.tokens for segment in segments] == [5, 5]

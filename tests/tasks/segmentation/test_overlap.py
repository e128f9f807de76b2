"""The overlap of segments: as long as possible, within its limit and the budget."""

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation.overlap import find_overlap
from neural.tasks.segmentation.text_buffer import TextBuffer
from neural.tasks.segmentation.token_counting import make_token_counter

ELEMENTS = ["One two three. ", "Four five. ", "Six seven eight nine. ", "Ten. "]
TEXT = "".join(ELEMENTS)
STARTS = [0, 15, 26, 48]


def extend(start, overlap, max_tokens=None, tokenizer="words", starts=STARTS, text=TEXT):
    buffer = TextBuffer()
    buffer.append(text)
    counter = make_token_counter(tokenizer)
    return find_overlap(
        buffer, starts, start, len(text), counter, overlap=overlap, max_tokens=max_tokens
    )


def test_whole_elements_are_repeated_as_far_as_they_fit():
    assert extend(48, 4) == (26, 5)
    assert extend(48, 5) == (26, 5)
    assert extend(48, 6) == (15, 7)
    assert extend(48, 99) == (0, 10)


def test_words_are_repeated_if_the_element_is_too_long():
    start, tokens = extend(48, 2)
    assert TEXT[start:48] == "eight nine. " and tokens == 3


def test_the_budget_includes_the_overlap():
    assert extend(48, 6, max_tokens=6) == (26, 5)
    assert extend(48, 6, max_tokens=1) is None


def test_the_start_of_the_text_has_no_overlap():
    assert extend(0, 5) is None


def test_elements_that_were_forgotten_are_not_repeated():
    assert extend(48, 99, starts=STARTS[1:]) == (15, 7)


@settings(max_examples=300, deadline=None)
@given(st.text("ab \n", min_size=30, max_size=40), st.integers(1, 6), st.integers(6, 12))
def test_no_tokenizer_exceeds_a_limit(text, overlap, max_tokens):
    def count(part):
        return hashlib.sha256(part.encode()).digest()[0] % 14

    result = extend(24, overlap, max_tokens, count, starts=[0], text=text)
    if result is not None:
        start, tokens = result
        assert start < 24
        assert count(text[start:24]) <= overlap
        assert count(text[start:]) == tokens <= max_tokens


def test_characters_of_a_script_without_spaces_are_repeated():
    assert extend(7, 3, text="港口六点开放。面包", starts=[0, 7]) == (4, 5)

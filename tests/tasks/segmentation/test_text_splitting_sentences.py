"""Sentence splitting: ends of sentences, and full stops that do not end one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
from neural.tasks.segmentation.text_splitting import find_elements, find_sentence_ends


def split_sentences(text):
    sentences, start = [], 0
    for end in find_sentence_ends(text, 0, len(text)):
        sentences.append(text[start:end].strip())
        start = end
    return [sentence for sentence in sentences if sentence]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Prof. Jones",
        "He paid $3.50 for 1.000 of them",
        "See example.org for more",
        "J. R. R. Tolkien wrote it",
        "“Why?” he asked",
        "It went on... and on",
        "Trees, e.g. Oaks, grow",
        "As in Fig. 3 and No. 7",
        "The U.S. Army came",
        "1. Introduction",
        "“Go!” – he said",
        "Weights from − 1 … 1",
        "It is 0 ... 10 for scores of 1 … −5",
    ],
)
def test_one_sentence_is_not_split(text):
    assert split_sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was. He left.", ["It was.", "He left."]),
        ("So did I. Then we went.", ["So did I.", "Then we went."]),
        ("In 1990 … It was over.", ["In 1990 …", "It was over."]),
        ("Wait … 5 came.", ["Wait …", "5 came."]),
        ("“Go!” She went.", ["“Go!”", "She went."]),
        ("At 5 p.m. The bell rang.", ["At 5 p.m.", "The bell rang."]),
        ("He stopped... The bell rang.", ["He stopped...", "The bell rang."]),
        ("我来了。你好！真的？是的", ["我来了。", "你好！", "真的？", "是的"]),
        ("彼は言った。」そして", ["彼は言った。」", "そして"]),
        (
            "a charge to keep . He said `` no '' . Then .",
            ["a charge to keep .", "He said `` no '' .", "Then ."],
        ),
        ("(It is so.) And so on.", ["(It is so.)", "And so on."]),
        ("Nie wiem. - Ja też. – Dobrze.", ["Nie wiem.", "- Ja też.", "– Dobrze."]),
        ("वह आया। फिर गया। क्या?", ["वह आया।", "फिर गया।", "क्या?"]),
        ("وہ آیا۔ کیوں؟ پتہ نہیں۔", ["وہ آیا۔", "کیوں؟", "پتہ نہیں۔"]),
        ("Նա եկավ։ Հետո գնաց։", ["Նա եկավ։", "Հետո գնաց։"]),
        ("እሱ መጣ። ከዚያ ሄደ።", ["እሱ መጣ።", "ከዚያ ሄደ።"]),
        ("Born in 1990. In 2000 he left.", ["Born in 1990.", "In 2000 he left."]),
    ],
)
def test_several_sentences_are_split(text, expected):
    assert split_sentences(text) == expected


def test_a_colon_after_an_armenian_letter_is_a_full_stop():
    text = "Նա եկավ: Հետո գնաց:"
    assert [text[start:end] for start, end in find_elements(text)] == ["Նա եկավ:", "Հետո գնաց:"]


FRAGMENTS = (
    *"–։ա।aAiI1.!?…。！ \n\t\f\x1e\x85\u2028\u00a0\ufeff\"'”)(#-*_世É,;:",
    *(
        "''",
        " '' ",
        "Mr.",
        "e.g.",
        "U.S.",
        "iv. ",
        "12. ",
        "etc.",
        "\n\n",
        "1 … ",
        "word ",
        "The ",
        "Él ",
    ),
)


@pytest.mark.skipif(not available_levels(), reason="the native library is not built")
@pytest.mark.parametrize("level", available_levels())
@settings(max_examples=150, deadline=None)
@given(
    text=st.one_of(
        st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join), st.text(max_size=40)
    )
)
def test_the_kernel_finds_the_same_sentences(level, text):
    with no_kernels():
        expected = find_elements(text)
    with force_level(level):
        assert find_elements(text) == expected

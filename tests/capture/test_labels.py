"""Labels of positions: what is accepted, what is refused, and which axes they name."""

import numpy as np
import pytest
import torch

from neural.capture.attention_call import AttentionCall
from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.labels import AxisLabels, check_labels, label_axes

WORDS = ["the", "cat", "sat", "on", "mats"]


def create_call(queries=5, keys=5, batch=1, **options) -> AttentionCall:
    return AttentionCall(
        torch.randn(batch, 2, queries, 3), torch.randn(batch, 2, keys, 3), **options
    )


def create_calls(**options) -> list[CapturedCall]:
    return [CapturedCall("encoder.attention", 2, create_call(**options))]


def test_a_list_of_texts_labels_every_example():
    assert check_labels(WORDS, create_calls(batch=3)) == [WORDS, WORDS, WORDS]


def test_labels_may_be_an_array_of_texts():
    assert check_labels(np.array(WORDS), create_calls(batch=2)) == [WORDS, WORDS]
    rows = np.array([WORDS, WORDS[::-1]])
    assert check_labels(rows, create_calls(batch=2)) == [WORDS, WORDS[::-1]]
    assert check_labels(list(rows), create_calls(batch=2)) == [WORDS, WORDS[::-1]]


def test_a_list_for_each_example_is_kept():
    labels = [WORDS, tuple(reversed(WORDS))]
    assert check_labels(labels, create_calls(batch=2)) == [WORDS, WORDS[::-1]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            WORDS[:-1],
            r"labels has 4 labels, but the attention has 5 positions \(`encoder.attention`\)",
        ),
        ([], "labels has 0 labels, but the attention has 5 positions"),
        ([WORDS, WORDS[1:]], r"labels\[1\] has 4 labels, but the attention has 5 positions"),
        ([WORDS], "labels has 1 lists, but the batch size is 2: give one list of labels per"),
        ("the cat", r"labels is one text; .* text.split\(\) for words"),
        (["a", "b", 3, "d", "e"], r"labels\[2\] is 3, not a text; str\(…\)"),
        (["a", None, "c", "d", "e"], r'labels\[1\] is None, not a text; write "" for a position'),
        ([WORDS, "the"], r"labels\[1\] must be a list of texts, not 'the'"),
        (7, "labels must be a list of texts, or a list of such lists, not 7"),
        (torch.zeros(99), "labels must be a list of texts, or a list of such lists, not a Tensor"),
    ],
)
def test_wrong_labels_are_explained(labels, message):
    with pytest.raises(ValueError, match=message):
        check_labels(labels, create_calls(batch=2))


def test_labels_may_belong_to_one_of_two_sequences():
    calls = [
        CapturedCall("encoder", 2, create_call(7, 7)),
        CapturedCall("decoder", 2, create_call(5, 5)),
    ]
    assert check_labels(WORDS, calls) == [WORDS]
    assert label_axes(calls[0].attention, WORDS) == (None, None)
    assert label_axes(calls[1].attention, WORDS) == (WORDS, WORDS)


def test_labels_of_a_model_without_attention_are_kept():
    assert check_labels(WORDS, []) == [WORDS]


@pytest.mark.parametrize(
    ("options", "queries"),
    [
        ({}, WORDS),
        ({"queries": 2}, WORDS[3:]),  # with a cache, the queries are the last positions
        ({"queries": 2, "query_offset": 1}, WORDS[1:3]),
        ({"known_positions": "keys"}, None),  # cross-attention: the queries are of another sequence
        ({"known_positions": "none"}, None),
    ],
)
def test_queries_are_named_only_if_they_are_positions_of_the_same_sequence(options, queries):
    assert label_axes(create_call(**options), WORDS) == AxisLabels(queries, WORDS)


def test_extra_keys_have_no_labels():
    assert label_axes(create_call(keys=6, extra_keys=1), WORDS) == AxisLabels(WORDS, WORDS)


def test_a_capture_names_the_axes_of_each_layer():
    capture = Capture()
    capture.calls = [*create_calls(batch=2), CapturedCall("nan", 2, None)]
    assert capture.axis_labels(0) == (None, None)
    capture.labels = check_labels([WORDS, WORDS[::-1]], capture)
    assert capture.axis_labels(0, example=1) == (WORDS[::-1], WORDS[::-1])
    assert capture.axis_labels(1) == (None, None)

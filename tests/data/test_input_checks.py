"""Inputs that do not fit a network are refused, with the array and the position in the message."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.input_checks import (
    MAX_BLOCK_NUMBERS,
    check_inputs,
    compute_output_shape,
    find_first,
)
from tests.tasks.networks import DENSE, READER, TRANSLATE, build_network

OPEN = build_network(
    "(None, 3)", 'Conv1D(4, kernel_size=3, strides=2) | Output(2, activation="softmax")'
)


def refusal_message(arrays, network=DENSE):
    with pytest.raises(TaskError) as caught:
        check_inputs(arrays, network, "d.npz")
    return str(caught.value)


def features(rows=5, **values):
    """Zeros, except for values at positions such as `_3_2`."""
    x = np.zeros((rows, 7))
    for position, value in values.items():
        x[tuple(map(int, position.strip("_").split("_")))] = value
    return x


def test_inputs_that_fit_are_accepted():
    check_inputs({"x": features(), "y": np.zeros(5)}, DENSE, "d.npz")
    check_inputs({"x": np.zeros((5, 7), dtype=np.int32)}, READER, "d.npz")
    check_inputs({"x": np.full((5, 7), 10.0)}, READER, "d.npz")  # integers stored as floats
    check_inputs({"x": np.zeros((2, 99, 3))}, OPEN, "d.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x": np.zeros((5, 8))},
            "d.npz: `x` is (5, 8), but Small takes (B, 7); write `input: (8,)`",
        ),
        (
            {"x": np.zeros((5, 7, 1))},
            "d.npz: `x` is (5, 7, 1), but Small takes (B, 7); reshape it to (-1, 7)",
        ),
        ({"x": np.zeros(5)}, "d.npz: `x` is (5,), but Small takes (B, 7)"),
        (
            {"x": features(), "y": np.zeros(4)},
            "d.npz: `x` and `y` differ in length: (5, 7) and (4,)",
        ),
        (
            {"x": features(), "y": np.float64(3)},
            "d.npz: `x` and `y` differ in length: (5, 7) and ()",
        ),
        ({"x": features(0)}, "d.npz: there are no examples; `x` is (0, 7)"),
        (
            {"x": features(_3_2=np.nan)},
            "d.npz: `x` has nan at [3, 2]; remove or replace such examples",
        ),
        (
            {"x": features(_1_6=-np.inf)},
            "d.npz: `x` has -inf at [1, 6]; remove or replace such examples",
        ),
        ({"x": np.array([["a"] * 7])}, "d.npz: `x` holds <U1, not numbers"),
        ({"x": features() * 1j}, "d.npz: `x` holds complex128, not numbers"),
    ],
)
def test_inputs_that_do_not_fit_are_named(arrays, message):
    assert refusal_message(arrays) == message


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(5), "is (5,), but must be (5, 7): one value per position of `x`"),
        (np.full((5, 7), 0.5), "has 0.5 at [0, 0], but must be 1 (real) or 0 (padding)"),
        (np.full((5, 7), "a"), "has a at [0, 0], but must be 1 (real) or 0 (padding)"),
    ],
)
def test_a_mask_is_a_one_or_a_zero_per_position(mask, message):
    assert refusal_message({"x": features(), "mask": mask}) == f"d.npz: `mask` {message}"


def test_a_mask_that_hides_a_whole_example_is_refused():
    mask = np.arange(7) < np.array([[1], [2], [7], [0], [0]])
    message = "d.npz: `mask`: example 3 is only padding; remove it"
    assert refusal_message({"x": features(), "mask": mask}) == message


@pytest.mark.parametrize(
    ("value", "shown"), [(11, "11.0"), (-1, "-1.0"), (2.5, "2.5"), (np.nan, "nan")]
)
def test_an_id_out_of_range_is_shown_with_its_position(value, shown):
    expected = "must hold integers from 0 to 10: `Embedding` has 11 ids"
    assert (
        refusal_message({"x": features(_4_1=value)}, READER)
        == f"d.npz: `x` has {shown} at [4, 1], but {expected}"
    )


def test_a_length_that_need_not_be_declared_may_be_left_open():
    network = build_network(
        "(9, 3)",
        'TransformerEncoder(num_heads=1, d_model=3, dff=5) | Output(2, activation="softmax")',
    )
    message = refusal_message({"x": np.zeros((2, 5, 3))}, network)
    assert message.endswith("write `input: (5, 3)`, or `input: (None, 3)` for any length")


def test_a_sequence_of_only_padding_is_refused():
    source = np.array([[1, 0], [0, 0]])
    message = refusal_message({"source": source, "target": source}, TRANSLATE)
    assert message == "d.npz: `source`: example 1 is only padding (id 0); remove it"


def test_find_first_searches_beyond_the_first_block():
    x = np.zeros((3, MAX_BLOCK_NUMBERS // 2 + 1), dtype=np.int8)
    x[2, 5] = 1
    assert find_first(x, lambda block: block == 1) == (2, 5)
    assert find_first(x, lambda block: block == 2) is None


def test_open_sizes_are_resolved_by_the_data():
    assert compute_output_shape(OPEN, {"x": np.zeros((2, 99, 3))}) == (49, 2)
    assert compute_output_shape(
        TRANSLATE, {"source": np.zeros((2, 5)), "target": np.zeros((2, 3))}
    ) == (3, 11)


def test_an_input_that_is_too_short_for_a_layer_is_refused():
    with pytest.raises(TaskError, match="Small cannot take inputs of this size"):
        compute_output_shape(OPEN, {"x": np.zeros((2, 2, 3))})

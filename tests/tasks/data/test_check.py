"""What does not fit a network is refused before anything starts, and the message says what and where."""

import numpy as np
import pytest

from neural.tasks.data.check import BLOCK, check_inputs, first, gives
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, READER, TRANSLATE, made

OPEN = made("(None, 3)", 'Conv1D(4, kernel_size=3, strides=2) | Output(2, activation="softmax")')


def refused(arrays, network=DENSE):
    with pytest.raises(TaskError) as caught:
        check_inputs(arrays, network, "d.npz")
    return str(caught.value)


def features(rows=5, **places):
    """Zeros, but for what is put at places such as `_3_2`."""
    x = np.zeros((rows, 7))
    for place, value in places.items():
        x[tuple(map(int, place.strip("_").split("_")))] = value
    return x


def test_what_fits_is_taken():
    check_inputs({"x": features(), "y": np.zeros(5)}, DENSE, "d.npz")
    check_inputs({"x": np.zeros((5, 7), dtype=np.int32)}, READER, "d.npz")
    check_inputs({"x": np.full((5, 7), 10.0)}, READER, "d.npz")   # whole numbers, if not by their type
    check_inputs({"x": np.zeros((2, 99, 3))}, OPEN, "d.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((5, 8))}, "d.npz: `x` is (5, 8), but Small takes (B, 7); write `input: (8,)`"),
        ({"x": np.zeros((5, 7, 1))}, "d.npz: `x` is (5, 7, 1), but Small takes (B, 7); reshape it to (-1, 7)"),
        ({"x": np.zeros(5)}, "d.npz: `x` is (5,), but Small takes (B, 7)"),
        ({"x": features(), "y": np.zeros(4)}, "d.npz: `x` and `y` differ in length: (5, 7) and (4,)"),
        ({"x": features(), "y": np.float64(3)}, "d.npz: `x` and `y` differ in length: (5, 7) and ()"),
        ({"x": features(0)}, "d.npz: there are no examples; `x` is (0, 7)"),
        ({"x": features(_3_2=np.nan)}, "d.npz: `x` has nan at [3, 2]; remove or replace such examples"),
        ({"x": features(_1_6=-np.inf)}, "d.npz: `x` has -inf at [1, 6]; remove or replace such examples"),
        ({"x": np.array([["a"] * 7])}, "d.npz: `x` holds <U1, not numbers"),
        ({"x": features() * 1j}, "d.npz: `x` holds complex128, not numbers"),
    ],
)
def test_what_does_not_fit_is_named(arrays, message):
    assert refused(arrays) == message


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(5), "is (5,), but must be (5, 7): a number per position of `x`"),
        (np.full((5, 7), 0.5), "has 0.5 at [0, 0], but must be 1 (real) or 0 (padding)"),
        (np.full((5, 7), "a"), "has a at [0, 0], but must be 1 (real) or 0 (padding)"),
    ],
)
def test_a_mask_is_a_one_or_a_zero_per_position(mask, message):
    assert refused({"x": features(), "mask": mask}) == f"d.npz: `mask` {message}"


def test_a_mask_that_leaves_nothing_of_an_example_is_refused():
    mask = np.arange(7) < np.array([[1], [2], [7], [0], [0]])
    message = "d.npz: `mask`: example 3 is padding from end to end; remove it"
    assert refused({"x": features(), "mask": mask}) == message


@pytest.mark.parametrize(("value", "shown"), [(11, "11.0"), (-1, "-1.0"), (2.5, "2.5"), (np.nan, "nan")])
def test_an_id_that_there_is_not_is_shown_with_its_place(value, shown):
    wanted = "must be whole numbers from 0 to 10: `Embedding` has 11 ids"
    assert refused({"x": features(_4_1=value)}, READER) == f"d.npz: `x` has {shown} at [4, 1], but {wanted}"


def test_a_length_that_need_not_be_declared_may_be_left_open():
    network = made("(9, 3)", 'TransformerEncoder(num_heads=1, d_model=3, dff=5) | Output(2, activation="softmax")')
    message = refused({"x": np.zeros((2, 5, 3))}, network)
    assert message.endswith("write `input: (5, 3)`, or `input: (None, 3)` for any length")


def test_a_sequence_of_nothing_but_padding_is_refused():
    source = np.array([[1, 0], [0, 0]])
    message = refused({"source": source, "target": source}, TRANSLATE)
    assert message == "d.npz: `source`: example 1 is padding (id 0) from end to end; remove it"


def test_the_first_place_is_found_beyond_the_first_block():
    x = np.zeros((3, BLOCK // 2 + 1), dtype=np.int8)
    x[2, 5] = 1
    assert first(x, lambda part: part == 1) == (2, 5)
    assert first(x, lambda part: part == 2) is None


def test_open_sizes_are_known_once_there_is_data():
    assert gives(OPEN, {"x": np.zeros((2, 99, 3))}) == (49, 2)
    assert gives(TRANSLATE, {"source": np.zeros((2, 5)), "target": np.zeros((2, 3))}) == (3, 11)


def test_an_input_that_is_too_short_for_a_layer_is_refused():
    with pytest.raises(TaskError, match="Small cannot take inputs of this size"):
        gives(OPEN, {"x": np.zeros((2, 2, 3))})

"""The digits dataset in several input shapes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from neural.core.errors import TaskError
from neural.data.sources.digits import Digits
from tests.tasks.networks import build_network

CLASSES = 'Output(10, activation="softmax")'


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("(8, 8, 1)", (8, 8, 1)),
        ("(8, 8)", (8, 8)),
        ("(64,)", (64,)),
        ("(None, 1)", (64, 1)),
        ("(4, 16)", (4, 16)),
    ],
)
def test_the_digits_come_in_the_shape_of_the_input(shape, expected):
    layers = f"Flatten() | {CLASSES}" if "None" not in shape and shape != "(64,)" else CLASSES
    examples = Digits.read("digits", build_network(shape, layers))
    assert examples.train["x"].shape == (1797, *expected)
    assert examples.train["x"].min() == 0.0
    assert examples.train["x"].max() == 1.0
    assert np.bincount(examples.train["y"]).min() > 170
    assert len(examples.classes) == 10


def test_before_an_embedding_the_digits_are_seventeen_grey_levels():
    network = build_network(
        "(64,)", f"Embedding(input_dim=17, output_dim=4) | GlobalAveragePooling1D() | {CLASSES}"
    )
    examples = Digits.read("digits", network)
    assert sorted(set(examples.train["x"].ravel().tolist())) == list(range(17))


def test_another_size_is_refused():
    with pytest.raises(
        TaskError, match=r"digits: an example has 64 numbers, but Small takes \(28, 28, 1\): 784"
    ):
        Digits.read("digits", build_network("(28, 28, 1)", f"Flatten() | {CLASSES}"))


def test_the_file_holds_the_digits_of_scikit_learn_bit_by_bit():
    expected = load_digits()
    network = build_network(
        "(64,)", f"Embedding(input_dim=17, output_dim=4) | Flatten() | {CLASSES}"
    )
    train = Digits.read("digits", network).train
    np.testing.assert_array_equal(train["x"], expected.data.astype(np.int64))
    np.testing.assert_array_equal(train["y"], expected.target)
    scaled = Digits.read("digits", build_network("(64,)", CLASSES)).train["x"]
    np.testing.assert_array_equal(scaled, (expected.data / 16).astype(np.float32))

"""The digits in any shape."""

import numpy as np
import pytest

from neural.tasks.data.sources.digits import Digits
from neural.tasks.task import TaskError
from tests.tasks.networks import made

CLASSES = 'Output(10, activation="softmax")'


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [("(8, 8, 1)", (8, 8, 1)), ("(8, 8)", (8, 8)), ("(64,)", (64,)), ("(None, 1)", (64, 1)), ("(4, 16)", (4, 16))],
)
def test_the_digits_come_in_the_shape_of_the_input(shape, wanted):
    layers = f"Flatten() | {CLASSES}" if "None" not in shape and shape != "(64,)" else CLASSES
    found = Digits.read("digits", made(shape, layers))
    assert found.train["x"].shape == (1797, *wanted)
    assert found.train["x"].min() == 0.0
    assert found.train["x"].max() == 1.0
    assert np.bincount(found.train["y"]).min() > 170
    assert len(found.classes) == 10


def test_before_an_embedding_the_digits_are_seventeen_grey_levels():
    network = made("(64,)", f"Embedding(input_dim=17, output_dim=4) | GlobalAveragePooling1D() | {CLASSES}")
    found = Digits.read("digits", network)
    assert sorted(set(found.train["x"].ravel().tolist())) == list(range(17))


def test_another_size_is_refused():
    with pytest.raises(TaskError, match=r"digits: an example has 64 numbers, but Small takes \(28, 28, 1\): 784"):
        Digits.read("digits", made("(28, 28, 1)", f"Flatten() | {CLASSES}"))

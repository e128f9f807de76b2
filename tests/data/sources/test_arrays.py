"""Arrays in memory."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.data.sources.arrays import Arrays
from tests.tasks.networks import DENSE

X, Y = np.ones((5, 7)), np.arange(5)


@pytest.mark.parametrize(
    "location",
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (torch.tensor(X, requires_grad=True), torch.tensor(Y)),
        {"x": X, "y": Y},
        (X, Y, X, Y),
    ],
    ids=["arrays", "lists", "tensors", "dict", "validation"],
)
def test_arrays_lists_tensors_and_dicts_are_accepted(location):
    assert Arrays.matches(location)
    examples = Arrays.read(location, DENSE)
    np.testing.assert_array_equal(examples.train["x"], X)
    np.testing.assert_array_equal(examples.train["y"], Y)
    assert (examples.valid is not None) == (len(location) == 4)


def test_a_tuple_of_three_arrays_is_refused():
    with pytest.raises(
        TaskError, match=r"the data has 3 arrays: pass \(x, y\) or \(x, y, x_valid, y_valid\)"
    ):
        Arrays.read((X, Y, X), DENSE)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(
        TaskError, match="`x` is not rectangular; pad its rows to one length and add a mask"
    ):
        Arrays.read(([[1, 2], [3]], [0, 1]), DENSE)

"""Arrays from Python."""

import numpy as np
import pytest
import torch

from neural.tasks.data.sources.arrays import Arrays
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE

X, Y = np.ones((5, 7)), np.arange(5)


@pytest.mark.parametrize(
    "where",
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (torch.tensor(X, requires_grad=True), torch.tensor(Y)),
        {"x": X, "y": Y},
        (X, Y, X, Y),
    ],
    ids=["arrays", "lists", "tensors", "dict", "validation"],
)
def test_arrays_come_as_they_are_at_hand(where):
    assert Arrays.fits(where)
    found = Arrays.read(where, DENSE)
    np.testing.assert_array_equal(found.train["x"], X)
    np.testing.assert_array_equal(found.train["y"], Y)
    assert (found.valid is not None) == (len(where) == 4)


def test_three_parts_are_refused():
    with pytest.raises(TaskError, match=r"the data has 3 parts: give \(x, y\) or \(x, y, x_valid, y_valid\)"):
        Arrays.read((X, Y, X), DENSE)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(TaskError, match="`x` is not rectangular; pad its rows to one length and give a mask"):
        Arrays.read(([[1, 2], [3]], [0, 1]), DENSE)

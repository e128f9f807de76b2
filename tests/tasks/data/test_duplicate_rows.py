"""Examples that are learned from and held out at once: counted, and noted where they matter."""

import numpy as np
import pytest

from neural.tasks.data import duplicate_rows
from neural.tasks.data.duplicate_rows import Duplicates, find_duplicates


def arrays(rows=100, seed=0):
    random = np.random.default_rng(seed)
    return {"x": random.normal(size=(rows, 7)).astype(np.float32), "y": random.integers(0, 3, rows)}


def test_copies_are_counted_and_other_targets_among_them():
    data = arrays()
    data["x"][80:90] = data["x"][:10]
    data["y"][80:90] = data["y"][:10]
    data["y"][80:83] += 1
    copies = find_duplicates(data, np.arange(80), data, np.arange(80, 100))
    assert copies == Duplicates(equal=10, other_target=3, held=20)
    (note,) = copies.note("table.csv")
    assert "table.csv: 10 of 20 examples held out have the inputs of a training example (3 with another target)" in note


def test_different_rows_are_no_copies():
    assert find_duplicates(arrays(), np.arange(80), arrays(), np.arange(80, 100)) == Duplicates(0, 0, 20)
    assert Duplicates(0, 0, 20).note("table.csv") == []


def test_types_and_signs_of_zero_do_not_matter():
    train = {"x": np.array([[0.0, 1.0]]), "y": np.array([1])}
    valid = {"x": np.array([[-0.0, 1.0]], dtype=np.float32), "y": np.array([1.0])}
    assert find_duplicates(train, np.arange(1), valid, np.arange(1)) == Duplicates(1, 0, 1)


def test_all_inputs_must_be_equal():
    train = {"source": np.eye(3), "mask": np.ones((3, 3)), "y": np.zeros(3)}
    valid = {"source": np.eye(3), "mask": np.tri(3), "y": np.zeros(3)}
    assert find_duplicates(train, np.arange(3), valid, np.arange(3)) == Duplicates(1, 0, 3)


def test_one_copy_among_thousands_is_not_worth_a_note():
    assert Duplicates(1, 0, 1000).note("images") == []
    assert len(Duplicates(10, 0, 1000).note("images")) == 1


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_ROWS"])
def test_large_data_is_not_searched(monkeypatch, limit):
    monkeypatch.setattr(duplicate_rows, limit, 50)
    assert find_duplicates(arrays(), np.arange(80), arrays(), np.arange(80, 100)) is None

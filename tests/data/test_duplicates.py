"""Validation examples that are also training examples: counted, and noted if there are many."""

import numpy as np
import pytest

from neural.data import duplicates
from neural.data.duplicates import DuplicateCounts, find_duplicates


def random_examples(rows=100, seed=0):
    random = np.random.default_rng(seed)
    return {"x": random.normal(size=(rows, 7)).astype(np.float32), "y": random.integers(0, 3, rows)}


def test_duplicates_and_those_with_another_target_are_counted():
    data = random_examples()
    data["x"][80:90] = data["x"][:10]
    data["y"][80:90] = data["y"][:10]
    data["y"][80:83] += 1
    duplicate_counts = find_duplicates(data, np.arange(80), data, np.arange(80, 100))
    assert duplicate_counts == DuplicateCounts(equal=10, other_target=3, held_out=20)
    (note,) = duplicate_counts.format_notes("table.csv")
    assert (
        "table.csv: 10 of 20 validation examples have the same inputs as a training example "
        "(3 with another target)"
    ) in note


def test_different_rows_are_not_duplicates():
    assert find_duplicates(
        random_examples(), np.arange(80), random_examples(), np.arange(80, 100)
    ) == DuplicateCounts(0, 0, 20)
    assert DuplicateCounts(0, 0, 20).format_notes("table.csv") == []


def test_types_and_signs_of_zero_do_not_matter():
    train = {"x": np.array([[0.0, 1.0]]), "y": np.array([1])}
    valid = {"x": np.array([[-0.0, 1.0]], dtype=np.float32), "y": np.array([1.0])}
    assert find_duplicates(train, np.arange(1), valid, np.arange(1)) == DuplicateCounts(1, 0, 1)


def test_all_inputs_must_be_equal():
    train = {"source": np.eye(3), "mask": np.ones((3, 3)), "y": np.zeros(3)}
    valid = {"source": np.eye(3), "mask": np.tri(3), "y": np.zeros(3)}
    assert find_duplicates(train, np.arange(3), valid, np.arange(3)) == DuplicateCounts(1, 0, 3)


def test_few_duplicates_give_no_note():
    assert DuplicateCounts(1, 0, 1000).format_notes("images") == []
    assert len(DuplicateCounts(10, 0, 1000).format_notes("images")) == 1


@pytest.mark.parametrize("limit", ["MAX_SEARCHED_BYTES", "MAX_SEARCHED_ROWS"])
def test_large_data_is_not_searched(monkeypatch, limit):
    monkeypatch.setattr(duplicates, limit, 50)
    assert (
        find_duplicates(random_examples(), np.arange(80), random_examples(), np.arange(80, 100))
        is None
    )

"""F1 of boundaries: the pairing is the largest there is, and documents are counted as stated."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.cutting.metrics.boundary_f1 import BoundaryF1, paired
from tests.tasks.cutting.segmentations import gaps, quickly

PLACES = st.lists(st.integers(1, 12), unique=True, max_size=5).map(sorted)


def most_pairs(true, found, tolerance) -> int:
    """By trying every way to pair them."""
    few, many = sorted((true, found), key=len)
    for size in range(len(few), 0, -1):
        for chosen in combinations(few, size):
            for others in permutations(many, size):
                if all(abs(one - other) <= tolerance for one, other in zip(chosen, others, strict=True)):
                    return size
    return 0


@quickly
@given(PLACES, PLACES, st.integers(0, 3))
def test_pairing_from_left_to_right_is_as_good_as_trying_every_way(true, found, tolerance):
    assert paired(np.array(true, int), np.array(found, int), tolerance) == most_pairs(true, found, tolerance)


def scores(*documents):
    metric = BoundaryF1()
    truths, predictions = zip(*((gaps(one), gaps(other)) for one, other in documents), strict=True)
    found = metric.scores(metric.counts(truths, predictions).sum(axis=0))
    return {name: float(value) for name, value in found.items()}


def test_a_boundary_beside_the_true_one_counts_within_one():
    found = scores(("010001", "001001"))
    assert found["boundary_f1"] == 0.5
    assert found["boundary_f1_within_1"] == 1


def test_two_found_beside_one_true_are_one_pair():
    assert scores(("00100", "01010"))["boundary_f1_within_2"] == pytest.approx(2 / 3)


def test_micro_counts_boundaries_and_macro_counts_documents():
    found = scores(("1111", "1111"), ("0100", "0010"))
    assert found["boundary_f1"] == pytest.approx(8 / 10)
    assert found["boundary_f1_macro"] == pytest.approx(1 / 2)


def test_nothing_true_and_nothing_found_is_right():
    assert scores(("000", "000"))["boundary_f1"] == 1
    assert scores(("000", "000"), ("010", "001"))["boundary_f1_macro"] == 0.5
    assert scores(("000", "000"), ("010", "001"))["boundary_f1"] == 0
    assert scores(("000", "010"))["boundary_f1_macro"] == 0


def test_the_first_element_never_counts():
    assert BoundaryF1().of([1, 0, 1], [0, 0, 1]) == 1
    assert BoundaryF1().of([1], [0]) == 1

"""F1 of boundaries: maximum matching; micro and macro averages."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.segmentation.metrics.boundary_f1 import BoundaryF1, count_matches
from tests.tasks.segmentation.segmentations import boundaries_from_gaps, quick_settings

POSITIONS = st.lists(st.integers(1, 12), unique=True, max_size=5).map(sorted)


def enumerate_matches(true, predicted, tolerance) -> int:
    """Maximum number of matches, by enumeration."""
    few, many = sorted((true, predicted), key=len)
    for size in range(len(few), 0, -1):
        for chosen in combinations(few, size):
            for others in permutations(many, size):
                pairs = zip(chosen, others, strict=True)
                if all(abs(a - b) <= tolerance for a, b in pairs):
                    return size
    return 0


@quick_settings
@given(POSITIONS, POSITIONS, st.integers(0, 3))
def test_greedy_matching_is_optimal(true, predicted, tolerance):
    matches = count_matches(np.array(true, int), np.array(predicted, int), tolerance)
    assert matches == enumerate_matches(true, predicted, tolerance)


def compute_scores(*documents):
    """Scores of pairs of gap strings: truth, prediction."""
    metric = BoundaryF1()
    truths = [boundaries_from_gaps(truth) for truth, _ in documents]
    predictions = [boundaries_from_gaps(prediction) for _, prediction in documents]
    totals = metric.count_documents(truths, predictions).sum(axis=0)
    return {name: float(value) for name, value in metric.scores(totals).items()}


def test_a_boundary_beside_the_true_one_counts_within_one():
    scores = compute_scores(("010001", "001001"))
    assert scores["boundary_f1"] == 0.5
    assert scores["boundary_f1_within_1"] == 1


def test_two_predictions_beside_one_boundary_are_one_match():
    assert compute_scores(("00100", "01010"))["boundary_f1_within_2"] == pytest.approx(2 / 3)


def test_micro_counts_boundaries_and_macro_counts_documents():
    scores = compute_scores(("1111", "1111"), ("0100", "0010"))
    assert scores["boundary_f1"] == pytest.approx(8 / 10)
    assert scores["boundary_f1_macro"] == pytest.approx(1 / 2)


def test_no_true_and_no_predicted_boundaries_score_1():
    assert compute_scores(("000", "000"))["boundary_f1"] == 1
    assert compute_scores(("000", "000"), ("010", "001"))["boundary_f1_macro"] == 0.5
    assert compute_scores(("000", "000"), ("010", "001"))["boundary_f1"] == 0
    assert compute_scores(("000", "010"))["boundary_f1_macro"] == 0


def test_the_first_element_never_counts():
    assert BoundaryF1().score([1, 0, 1], [0, 0, 1]) == 1
    assert BoundaryF1().score([1], [0]) == 1

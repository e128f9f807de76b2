"""TextTiling: cohesion minima, on small curves and in documents of clear topics."""

import numpy as np
import pytest

from neural.tasks.segmentation.baselines._term_counts import count_terms
from neural.tasks.segmentation.baselines.text_tiling import (
    TextTiling,
    compute_cohesion,
    compute_depths,
    find_valleys,
    refine_to_minimum,
    smooth_scores,
)
from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths
from tests.tasks.segmentation.baselines.topics import make_document


def test_clear_topics_are_found():
    lengths = [9, 12, 8, 11]
    assert boundaries_to_lengths(TextTiling(block=6).predict(make_document(lengths))) == lengths


def test_cohesion_is_the_cosine_of_the_blocks():
    elements = ["red blue", "red green", "green green", "blue"]
    counts = count_terms(elements).to_dense()
    for block in (1, 2, 3, 9):
        for gap, cohesion in enumerate(compute_cohesion(count_terms(elements), block), start=1):
            left = counts[max(0, gap - block) : gap].sum(axis=0)
            right = counts[gap : gap + block].sum(axis=0)
            norms = np.sqrt((left @ left) * (right @ right))
            assert cohesion == pytest.approx(left @ right / norms)


def test_a_block_without_words_has_a_cohesion_of_zero():
    assert compute_cohesion(count_terms(["the", "the", "red"]), 1).tolist() == [0, 0]


def test_depth_is_measured_from_the_peaks_on_both_sides():
    assert compute_depths(np.array([5.0, 3, 1, 1, 4, 2, 6])).tolist() == [0, 2, 7, 7, 0, 6, 0]


def test_a_flat_minimum_counts_once():
    assert np.flatnonzero(find_valleys(np.array([3.0, 2, 2, 1, 1, 5, 0, 4, 4]))).tolist() == [3, 6]
    assert np.flatnonzero(find_valleys(np.array([1.0, 2, 3]))).tolist() == [0]
    assert np.flatnonzero(find_valleys(np.array([2.0, 2, 2]))).tolist() == [0]


def test_smoothing_averages_existing_neighbours():
    assert smooth_scores(np.array([3.0, 0, 3, 6])).tolist() == [1.5, 2, 3, 4.5]


def test_a_boundary_moves_to_the_lowest_gap_beside_it():
    refined = refine_to_minimum(np.array([1.0, 2, 3, 2, 2]), np.array([0, 1, 3, 4]))
    assert refined.tolist() == [0, 0, 3, 4]


def test_a_document_of_one_repeated_sentence_is_one_segment():
    assert boundaries_to_lengths(TextTiling().predict(["red green blue"] * 20)) == [20]

"""TextTiling: valleys of cohesion, defined on small curves, found in documents of clear topics."""

import numpy as np
import pytest

from neural.tasks.cutting.baselines._terms import term_counts
from neural.tasks.cutting.baselines.text_tiling import TextTiling, bottoms, cohesion, depths, lowest_near, smoothed
from neural.tasks.cutting.masses import masses
from tests.tasks.cutting.baselines.topics import document


def test_clear_topics_are_found():
    lengths = [9, 12, 8, 11]
    assert masses(TextTiling(block=6).boundaries(document(lengths))) == lengths


def test_cohesion_is_the_cosine_of_the_blocks():
    elements = ["red blue", "red green", "green green", "blue"]
    counts = term_counts(elements).toarray()
    for block in (1, 2, 3, 9):
        for gap, found in enumerate(cohesion(term_counts(elements), block), start=1):
            left, right = counts[max(0, gap - block) : gap].sum(axis=0), counts[gap : gap + block].sum(axis=0)
            assert found == pytest.approx(left @ right / np.sqrt((left @ left) * (right @ right)))


def test_a_block_without_words_has_nothing_in_common():
    assert cohesion(term_counts(["the", "the", "red"]), 1).tolist() == [0, 0]


def test_depth_is_counted_from_the_peaks_on_both_sides():
    assert depths(np.array([5.0, 3, 1, 1, 4, 2, 6])).tolist() == [0, 2, 7, 7, 0, 6, 0]


def test_a_bottom_is_the_first_gap_of_the_lowest():
    assert np.flatnonzero(bottoms(np.array([3.0, 2, 2, 1, 1, 5, 0, 4, 4]))).tolist() == [3, 6]
    assert np.flatnonzero(bottoms(np.array([1.0, 2, 3]))).tolist() == [0]
    assert np.flatnonzero(bottoms(np.array([2.0, 2, 2]))).tolist() == [0]


def test_smoothing_averages_what_is_there():
    assert smoothed(np.array([3.0, 0, 3, 6])).tolist() == [1.5, 2, 3, 4.5]


def test_a_boundary_moves_to_the_lowest_gap_beside_it():
    assert lowest_near(np.array([1.0, 2, 3, 2, 2]), np.array([0, 1, 3, 4])).tolist() == [0, 0, 3, 4]


def test_a_document_of_one_topic_repeated_is_one_part():
    assert masses(TextTiling().boundaries(["red green blue"] * 20)) == [20]

"""Bins of probabilities: 1 is in the last bin, no equal-mass bin is empty, ties stay together."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from neural.tasks.segmentation.probability import equal_mass_edges, equal_width_edges, sum_by_bin


def test_1_is_in_the_last_bin_and_0_in_the_first_and_an_edge_in_the_bin_above():
    p = np.array([0.0, 1.0, 0.999, 0.05, 0.5])
    cells = sum_by_bin(equal_width_edges(10), p, np.ones(5), np.zeros(5, int))
    np.testing.assert_allclose(cells[0, 0], [2, 0, 0, 0, 0, 1, 0, 0, 0, 2])


@settings(max_examples=40, deadline=None)
@given(
    arrays.arrays(float, st.integers(1, 60), elements=st.sampled_from([-2, 0, 0.5, 1, 3, 9])),
    st.integers(1, 20),
)
def test_no_bin_is_empty_and_equal_values_stay_together(values, bins):
    edges = equal_mass_edges(values, bins)
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    assert (counts > 0).all()
    assert len(counts) <= bins


def test_distinct_values_are_distributed_evenly():
    values = np.random.default_rng(0).permutation(103)
    counts = np.bincount(np.searchsorted(equal_mass_edges(values, 10), values, side="right"))
    assert set(counts) == {10, 11}


def test_sums_are_by_document_and_bin():
    rng = np.random.default_rng(0)
    p, hits, documents = rng.random(50), rng.integers(2, size=50), rng.integers(4, size=50)
    cells = sum_by_bin(equal_width_edges(7), p, hits, documents)
    assert cells.shape == (4, 3, 7)
    for document in range(4):
        for bin_index in range(7):
            inside = (documents == document) & (p * 7 // 1 == bin_index)
            np.testing.assert_allclose(
                cells[document, :, bin_index], [inside.sum(), p[inside].sum(), hits[inside].sum()]
            )

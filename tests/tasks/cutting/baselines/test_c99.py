"""C99: ranks and divisions equal their definitions by plain loops, and clear topics are found."""

from itertools import pairwise

import numpy as np
import pytest

from neural.tasks.cutting.baselines._terms import term_counts
from neural.tasks.cutting.baselines.c99 import C99, division, ranks, similarities, worthwhile
from neural.tasks.cutting.masses import masses
from tests.tasks.cutting.baselines.topics import document


def drawn(n, seed=0):
    """Similarities with many equal ones, as cosines of short sentences are."""
    made = np.random.default_rng(seed).integers(0, 5, (n, n)) / 5
    return np.maximum(made, made.T)


def test_clear_topics_are_found():
    lengths = [5, 7, 4, 9, 6]
    assert masses(C99().boundaries(document(lengths))) == lengths


@pytest.mark.parametrize(("n", "mask"), [(17, 11), (17, 3), (4, 11), (1, 11), (5, 1)])
def test_a_rank_is_the_share_of_neighbours_that_are_less_similar(n, mask):
    similarity, reach = drawn(n), mask // 2
    for (i, j), found in np.ndenumerate(ranks(similarity, mask)):
        square = similarity[max(0, i - reach) : i + reach + 1, max(0, j - reach) : j + reach + 1]
        assert found == pytest.approx((square < similarity[i, j]).sum() / max(1, square.size - 1))


def test_ranks_are_the_same_in_bands_and_whole():
    similarity = drawn(300)
    corner = ranks(similarity, 11)[:100, :100]
    np.testing.assert_array_equal(corner[:95, :95], ranks(similarity[:100, :100], 11)[:95, :95])


def test_every_split_makes_the_parts_as_dense_as_can_be():
    rank, n = ranks(drawn(13), 5), 13

    def density(cuts):
        edges = [0, *sorted(cuts), n]
        inside = [rank[a:b, a:b] for a, b in pairwise(edges)]
        return sum(one.sum() for one in inside) / sum(one.size for one in inside)

    splits, found = division(rank)
    assert sorted(splits.tolist()) == list(range(1, n))
    for step in range(n):
        assert found[step] == pytest.approx(density(splits[:step]))
        if step < n - 1:
            others = [density([*splits[:step], gap]) for gap in range(1, n) if gap not in splits[:step]]
            assert found[step + 1] == pytest.approx(max(others))


def test_similarity_is_the_cosine_of_the_words():
    found = similarities(term_counts(["red blue", "red red green", "the of"]))
    np.testing.assert_allclose(found, [[1, 2 / np.sqrt(10), 0], [2 / np.sqrt(10), 1, 0], [0, 0, 0]])


def test_splitting_stops_where_the_gain_falls():
    gains = [0.5] * 9 + [0.01] * 60
    assert 7 <= worthwhile(np.cumsum([0, *gains]), 1.2) <= 11
    assert worthwhile(np.array([0.3]), 1.2) == 0
    assert worthwhile(np.zeros(9), 1.2) == 0


def test_a_long_document_is_taken_in_pieces():
    lengths = [6, 7, 5, 8, 6, 7]
    elements = document(lengths)
    found = C99(longest=20).boundaries(elements)
    halves = [C99().boundaries(part) for part in (elements[:19], elements[19:])]
    np.testing.assert_array_equal(found, np.concatenate(halves))

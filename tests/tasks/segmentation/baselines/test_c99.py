"""C99: ranks and splits equal their definitions by loops, and clear topics are found."""

from itertools import pairwise

import numpy as np
import pytest

from neural.tasks.segmentation.baselines._term_counts import count_terms
from neural.tasks.segmentation.baselines.c99 import (
    C99,
    cosine_similarities,
    count_worthwhile_splits,
    rank_similarities,
    split_by_density,
)
from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths
from tests.tasks.segmentation.baselines.topics import make_document


def draw_similarities(n, seed=0):
    """Symmetric similarities with many ties, like cosines of short sentences."""
    values = np.random.default_rng(seed).integers(0, 5, (n, n)) / 5
    return np.maximum(values, values.T)


def test_clear_topics_are_found():
    lengths = [5, 7, 4, 9, 6]
    assert boundaries_to_lengths(C99().predict(make_document(lengths))) == lengths


@pytest.mark.parametrize(("n", "mask"), [(17, 11), (17, 3), (4, 11), (1, 11), (5, 1)])
def test_a_rank_is_the_fraction_of_less_similar_neighbours(n, mask):
    similarity, radius = draw_similarities(n), mask // 2
    for (i, j), rank in np.ndenumerate(rank_similarities(similarity, mask)):
        rows = slice(max(0, i - radius), i + radius + 1)
        square = similarity[rows, max(0, j - radius) : j + radius + 1]
        assert rank == pytest.approx((square < similarity[i, j]).sum() / max(1, square.size - 1))


def test_ranks_do_not_depend_on_the_block_size():
    similarity = draw_similarities(300)
    corner = rank_similarities(similarity, 11)[:100, :100]
    np.testing.assert_array_equal(
        corner[:95, :95], rank_similarities(similarity[:100, :100], 11)[:95, :95]
    )


def test_every_split_maximizes_the_density():
    rank, n = rank_similarities(draw_similarities(13), 5), 13

    def compute_density(splits):
        edges = [0, *sorted(splits), n]
        blocks = [rank[start:end, start:end] for start, end in pairwise(edges)]
        return sum(block.sum() for block in blocks) / sum(block.size for block in blocks)

    splits, density = split_by_density(rank)
    assert sorted(splits.tolist()) == list(range(1, n))
    for step in range(n):
        assert density[step] == pytest.approx(compute_density(splits[:step]))
        if step < n - 1:
            candidates = [
                compute_density([*splits[:step], gap])
                for gap in range(1, n)
                if gap not in splits[:step]
            ]
            assert density[step + 1] == pytest.approx(max(candidates))


def test_similarities_of_frequent_and_rare_terms_are_cosines():
    random = np.random.default_rng(0)
    words = [f"{first}{second}nk" for first in "bdfgklmprst" for second in "aeiou"]
    # the first words are in most elements, the last ones in hardly any
    chances = 0.9 ** np.arange(len(words))
    elements = [
        " ".join(
            word for word, chance in zip(words, chances, strict=True) if random.random() < chance
        )
        for _ in range(70)
    ]
    counts = count_terms([*elements, elements[3] + " " + elements[3], ""])
    dense = counts.to_dense()
    norms = np.linalg.norm(dense, axis=1)
    expected = dense @ dense.T / np.maximum(np.outer(norms, norms), 1)
    np.testing.assert_allclose(cosine_similarities(counts), expected, atol=1e-14)


def test_similarity_is_the_cosine_of_the_words():
    similarity = cosine_similarities(count_terms(["red blue", "red red green", "the of"]))
    np.testing.assert_allclose(
        similarity, [[1, 2 / np.sqrt(10), 0], [2 / np.sqrt(10), 1, 0], [0, 0, 0]]
    )


def test_splitting_stops_when_the_gain_falls():
    gains = [0.5] * 9 + [0.01] * 60
    assert 7 <= count_worthwhile_splits(np.cumsum([0, *gains]), 1.2) <= 11
    assert count_worthwhile_splits(np.array([0.3]), 1.2) == 0
    assert count_worthwhile_splits(np.zeros(9), 1.2) == 0


def test_a_long_document_is_processed_in_chunks():
    lengths = [6, 7, 5, 8, 6, 7]
    elements = make_document(lengths)
    boundaries = C99(max_elements=20).predict(elements)
    halves = [C99().predict(chunk) for chunk in (elements[:19], elements[19:])]
    np.testing.assert_array_equal(boundaries, np.concatenate(halves))

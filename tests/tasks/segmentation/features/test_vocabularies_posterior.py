"""Posterior of a vocabulary change, compared with enumeration of all segmentations."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from neural.tasks.segmentation.features.vocabularies import compute_boundary_log_odds
from neural.tasks.segmentation.tokenization import tokenize_elements

ELEMENTS = [
    "apple pear plum",
    "pear apple fig",
    "apple",
    "saw drill file",
    "drill plane saw",
    "apple saw",
]


def enumerate_posterior(elements, *, expected_length, prior):
    """P(boundary) by summing over all segmentations; Dirichlet-multinomial in closed form."""
    stems = tokenize_elements(elements).stems
    size = len(stems.vocabulary)
    element_ids = [stems.ids[start:end] for start, end in pairwise(stems.starts)]

    def log_likelihood(ids):
        counts = np.bincount(ids, minlength=size)
        words = gammaln(counts + prior) - gammaln(prior)
        return words.sum() + gammaln(size * prior) - gammaln(counts.sum() + size * prior)

    values, segmentations = [], []
    for boundaries in product((False, True), repeat=len(elements) - 1):
        edges = [
            0,
            *(gap + 1 for gap, is_boundary in enumerate(boundaries) if is_boundary),
            len(elements),
        ]
        value = sum(
            log_likelihood(np.concatenate(element_ids[start:end]))
            - np.log(expected_length)
            + (end - start - 1) * np.log(1 - 1 / expected_length)
            for start, end in pairwise(edges)
        )
        values.append(value)
        segmentations.append(boundaries)
    weights = np.exp(np.array(values) - logsumexp(values))
    return weights @ np.array(segmentations, float)


def test_the_posterior_equals_enumeration():
    expected = enumerate_posterior(ELEMENTS, expected_length=3.0, prior=0.3)
    log_odds = compute_boundary_log_odds(
        tokenize_elements(ELEMENTS).stems, expected_length=3.0, prior=0.3, word_weight=1.0
    )[1:]
    np.testing.assert_allclose(1 / (1 + np.exp(-log_odds)), expected, rtol=1e-9)


def test_segments_longer_than_the_maximum_are_excluded():
    log_odds = compute_boundary_log_odds(
        tokenize_elements(["apple"] * 9).stems,
        expected_length=1000.0,
        word_weight=1.0,
        max_elements=3,
    )
    assert log_odds[1:].max() > 0  # nine equal elements must be split somewhere
    assert (
        compute_boundary_log_odds(
            tokenize_elements(["apple"] * 9).stems,
            expected_length=1000.0,
            word_weight=1.0,
            max_elements=9,
        )[1:].max()
        < 0
    )


@pytest.mark.parametrize("elements", [["one"], ["the of and"] * 3, ["", ""]])
def test_elements_without_stems_give_finite_odds(elements):
    assert np.isfinite(
        compute_boundary_log_odds(
            tokenize_elements(elements).stems, expected_length=8.0, word_weight=0.5
        )
    ).all()

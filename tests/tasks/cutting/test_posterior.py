from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from neural.tasks.cutting.posterior import log_odds
from neural.tasks.cutting.words import words_of

ELEMENTS = ["apple pear plum", "pear apple fig", "apple", "saw drill file", "drill plane saw", "apple saw"]


def by_enumeration(elements, *, usual, prior):
    """All segmentations, one by one, with the Dirichlet integrated out in closed form."""
    stems = words_of(elements).stems
    whole = len(stems.vocabulary)
    parts = [stems.ids[a:b] for a, b in pairwise(stems.starts)]

    def explained(ids):
        counts = np.bincount(ids, minlength=whole)
        words = gammaln(counts + prior) - gammaln(prior)
        return words.sum() + gammaln(whole * prior) - gammaln(counts.sum() + whole * prior)

    values, cuts = [], []
    for cut in product((False, True), repeat=len(elements) - 1):
        edges = [0, *(at + 1 for at, here in enumerate(cut) if here), len(elements)]
        value = sum(
            explained(np.concatenate(parts[a:b])) - np.log(usual) + (b - a - 1) * np.log(1 - 1 / usual)
            for a, b in pairwise(edges)
        )
        values.append(value)
        cuts.append(cut)
    weights = np.exp(np.array(values) - logsumexp(values))
    return weights @ np.array(cuts, float)


def test_the_sums_are_those_over_all_segmentations():
    truth = by_enumeration(ELEMENTS, usual=3.0, prior=0.3)
    odds = log_odds(words_of(ELEMENTS).stems, usual=3.0, prior=0.3, share=1.0)[1:]
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), truth, rtol=1e-9)


def test_parts_longer_than_the_most_are_not_thought_of():
    odds = log_odds(words_of(["apple"] * 9).stems, usual=1000.0, share=1.0, most=3)
    assert odds[1:].max() > 0   # nine alike elements must be cut somewhere
    assert log_odds(words_of(["apple"] * 9).stems, usual=1000.0, share=1.0, most=9)[1:].max() < 0


@pytest.mark.parametrize("elements", [["one"], ["the of and"] * 3, ["", ""]])
def test_elements_without_topic_words_give_finite_odds(elements):
    assert np.isfinite(log_odds(words_of(elements).stems, usual=8.0, share=0.5)).all()

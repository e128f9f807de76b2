"""Unigram and bigram models of characters."""

from collections import Counter

import numpy as np
import pytest

from neural.tasks.language_model import ngram_baselines
from neural.tasks.language_model.ngram_baselines import NgramBaselines

IDS = np.array([0, 1, 0, 1, 0, 2, 0, 1], dtype=np.uint8)


def test_probabilities_are_those_of_the_counts():
    baselines = NgramBaselines.from_text(IDS, np.arange(3), 4)
    unigram = np.exp(baselines.unigram)
    np.testing.assert_allclose(unigram, [5 / 12, 4 / 12, 2 / 12, 1 / 12])
    # 0 is followed by 1 three times and by 2 once: two different ids, so the weight of the
    # unigram model is 2 of 4 + 2
    np.testing.assert_allclose(
        np.exp(baselines.bigram[0]), (np.array([0, 3, 1, 0]) + 2 * unigram) / 6
    )
    np.testing.assert_allclose(np.exp(baselines.bigram).sum(axis=1), 1)


def test_chunks_do_not_change_the_counts(monkeypatch):
    expected = NgramBaselines.from_text(IDS, np.arange(3), 3)
    monkeypatch.setattr(ngram_baselines, "CHUNK_CHARACTERS", 3)
    baselines = NgramBaselines.from_text(IDS, np.arange(3), 3)
    np.testing.assert_allclose(baselines.unigram, expected.unigram)
    np.testing.assert_allclose(baselines.bigram, expected.bigram)


def test_losses_are_means_over_the_characters_of_a_window():
    baselines = NgramBaselines.from_text(IDS, np.arange(3), 3)
    x, y = np.array([[0, 1], [2, 0]]), np.array([[1, 0], [0, 1]])
    losses = baselines.window_losses(x, y)
    assert losses["unigram"][0] == pytest.approx(-baselines.unigram[[1, 0]].mean())
    assert losses["bigram"][1] == pytest.approx(
        -(baselines.bigram[2, 0] + baselines.bigram[0, 1]) / 2
    )


def test_ids_are_mapped_to_those_of_the_network():
    reordered = NgramBaselines.from_text(IDS, np.array([2, 1, 0]), 3)
    counts = Counter(IDS.tolist())
    assert np.exp(reordered.unigram[2]) == pytest.approx((counts[0] + 1) / (len(IDS) + 3))


def test_a_large_vocabulary_has_no_bigram_model(monkeypatch):
    monkeypatch.setattr(ngram_baselines, "MAX_BIGRAM_VOCABULARY", 2)
    baselines = NgramBaselines.from_text(IDS, np.arange(3), 3)
    assert set(baselines.window_losses(IDS[None], IDS[None])) == {"unigram"}

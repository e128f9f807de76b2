"""Share of validation n-grams that also occur in the training text."""

import numpy as np
import pytest

from neural.data.sources.handbook import read_handbook
from neural.tasks.language_model import ngram_overlap
from neural.tasks.language_model.ngram_overlap import (
    MAX_OVERLAP_SHARE,
    NGRAM_LENGTH,
    measure_ngram_overlap,
)


def random_ids(count, seed=0, dtype=np.uint8):
    return np.random.default_rng(seed).integers(0, 60, count).astype(dtype)


def share_by_sets(ids, train_end):
    text = ids.tolist()
    ngrams = [
        tuple(text[start : start + NGRAM_LENGTH]) for start in range(len(text) - NGRAM_LENGTH + 1)
    ]
    train_ngrams, valid_ngrams = set(ngrams[: train_end - NGRAM_LENGTH + 1]), ngrams[train_end:]
    return np.mean([ngram in train_ngrams for ngram in valid_ngrams])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_the_overlap_equals_the_share_of_ngrams_by_sets(monkeypatch, dtype, chunk):
    monkeypatch.setattr(ngram_overlap, "CHUNK_CHARACTERS", chunk)
    ids = random_ids(3000, dtype=dtype)
    ids[2500:2700] = ids[100:300]  # of the 451 n-grams held out, 151 are copies
    assert (
        measure_ngram_overlap(ids, 2500, 3000)
        == pytest.approx(share_by_sets(ids, 2500))
        == pytest.approx(151 / 451)
    )


def test_a_text_repeated_twelve_times_overlaps_completely():
    ids = np.tile(random_ids(1000), 12)
    assert measure_ngram_overlap(ids, 10_800, 12_000) == 1


def test_random_text_has_no_overlap():
    assert measure_ngram_overlap(random_ids(50_000), 45_000, 50_000) == 0


def test_text_after_the_validation_part_does_not_count():
    ids = random_ids(3000)
    ids[2800:] = ids[:200]
    assert measure_ngram_overlap(ids, 2500, 2750) == 0


def test_the_handbook_gets_no_note():
    ids = np.frombuffer(read_handbook().encode(), dtype=np.uint8)
    assert 0 < measure_ngram_overlap(ids, int(0.9 * len(ids)), len(ids)) < MAX_OVERLAP_SHARE


@pytest.mark.parametrize(("train_end", "valid_end"), [(40, 1000), (900, 949), (1000, 1000)])
def test_a_too_short_text_has_no_overlap(train_end, valid_end):
    assert measure_ngram_overlap(random_ids(1000), train_end, valid_end) is None

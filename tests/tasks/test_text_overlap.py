"""How much of a held-out text stands in the training text as well."""

import numpy as np
import pytest

from neural.tasks import _text_overlap as text_overlap
from neural.tasks._text_overlap import LENGTH, MAX_SHARED, shared_ngrams
from neural.tasks.data.sources.handbook import handbook_text


def random_ids(count, seed=0, dtype=np.uint8):
    return np.random.default_rng(seed).integers(0, 60, count).astype(dtype)


def by_sets(ids, end):
    text = ids.tolist()
    known = {tuple(text[at : at + LENGTH]) for at in range(end - LENGTH + 1)}
    held = [tuple(text[at : at + LENGTH]) for at in range(end, len(text) - LENGTH + 1)]
    return np.mean([ngram in known for ngram in held])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_it_is_the_share_of_ngrams_written_out(monkeypatch, dtype, chunk):
    monkeypatch.setattr(text_overlap, "CHUNK", chunk)
    ids = random_ids(3000, dtype=dtype)
    ids[2500:2700] = ids[100:300]   # of the 451 n-grams held out, 151 are copies
    assert shared_ngrams(ids, 2500, 3000) == pytest.approx(by_sets(ids, 2500)) == pytest.approx(151 / 451)


def test_a_text_repeated_twelve_times_is_shared_altogether():
    ids = np.tile(random_ids(1000), 12)
    assert shared_ngrams(ids, 10_800, 12_000) == 1


def test_other_text_shares_nothing():
    assert shared_ngrams(random_ids(50_000), 45_000, 50_000) == 0


def test_what_follows_the_part_held_out_does_not_count():
    ids = random_ids(3000)
    ids[2800:] = ids[:200]
    assert shared_ngrams(ids, 2500, 2750) == 0


def test_the_handbook_gets_no_note():
    ids = np.frombuffer(handbook_text().encode(), dtype=np.uint8)
    assert 0 < shared_ngrams(ids, int(0.9 * len(ids)), len(ids)) < MAX_SHARED


@pytest.mark.parametrize(("end", "last"), [(40, 1000), (900, 949), (1000, 1000)])
def test_too_short_a_text_has_no_share(end, last):
    assert shared_ngrams(random_ids(1000), end, last) is None

"""Intervals by drawing documents again: seeded, as wide as they should be, undecided of one document."""

import math

import numpy as np
import pytest

from neural.tasks.cutting import resample
from neural.tasks.cutting.resample import Interval, draws, interval, resampled


def test_every_set_has_as_many_documents_as_there_are():
    sets = np.concatenate(list(draws(7, resamples=50)))
    assert sets.shape == (50, 7)
    assert (sets.sum(axis=1) == 7).all()


def test_the_same_seed_draws_the_same_sets_however_many_at_once(monkeypatch):
    once = np.concatenate(list(draws(7, resamples=50, seed=3)))
    monkeypatch.setattr(resample, "AT_ONCE", 21)
    pieces = list(draws(7, resamples=50, seed=3))
    assert len(pieces) == 17
    np.testing.assert_array_equal(np.concatenate(pieces), once)
    assert (np.concatenate(list(draws(7, resamples=50, seed=4))) != once).any()


def test_sums_are_those_of_the_drawn_documents():
    counts = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    sets = np.concatenate(list(draws(3, resamples=11)))
    np.testing.assert_allclose(resampled(counts, resamples=11), sets @ counts)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    generator = np.random.default_rng(0)
    held, tries, documents = 0, 300, 12
    for number in range(tries):
        values = np.stack([generator.normal(0.4, 0.1, documents), np.ones(documents)], axis=1)
        sums = resampled(values, resamples=400, seed=number)
        found = interval(values[:, 0].mean(), sums[:, 0] / sums[:, 1], documents)
        held += found.low <= 0.4 <= found.high
    assert 0.91 < held / tries < 0.99


def test_one_document_says_nothing_about_others():
    found = interval(0.3, np.full(10, 0.3), 1)
    assert found.value == 0.3
    assert math.isnan(found.low)
    assert str(found) == "0.300"


def test_an_interval_reads_well():
    assert str(Interval(value=-0.25, low=-0.5, high=0.125)) == "−0.250 (−0.500 … 0.125)"
    assert str(Interval(value=math.nan, low=math.nan, high=math.nan)) == "none"


def test_nothing_cannot_be_drawn():
    with pytest.raises(ValueError, match="at least one document"):
        next(draws(0))

"""The numbers behind a reliability diagram."""

import json

import numpy as np
import pytest

from neural.tasks.cutting.reliability import Reliability, reliability


def test_bins_say_what_was_said_and_what_came_true():
    p = np.array([0.05, 0.15, 0.95, 1.0])
    found = reliability(p, np.array([0, 1, 1, 1.0]), np.arange(4), bins=5)
    assert found.counts == (2, 2)
    assert found.everything == (2, 0, 0, 0, 2)
    assert found.said == pytest.approx((0.1, 0.975))
    assert found.true == pytest.approx((0.5, 1.0))


def test_intervals_are_wilsons_where_elements_are_independent():
    hits = (np.arange(100) < 20).astype(float)
    found = reliability(np.full(100, 0.3), hits, np.arange(100), bins=1)
    assert (found.low[0], found.high[0]) == (pytest.approx(0.1334, abs=1e-3), pytest.approx(0.2888, abs=1e-3))


def test_nothing_came_true_is_still_uncertain():
    found = reliability(np.full(20, 0.3), np.zeros(20), np.arange(20), bins=1)
    assert found.low == (0,)
    assert 0.1 < found.high[0] < 0.2


def test_documents_that_go_together_count_for_less():
    hits = np.repeat(np.tile([0.0, 1.0], 5), 30)
    together = reliability(np.full(300, 0.5), hits, np.repeat(np.arange(10), 30), bins=1)
    alone = reliability(np.full(300, 0.5), hits, np.arange(300), bins=1)
    assert together.high[0] - together.low[0] > 4 * (alone.high[0] - alone.low[0])


def test_it_is_the_same_after_a_file():
    random = np.random.default_rng(0)
    found = reliability(random.random(40), random.integers(2, size=40), np.arange(40) % 3)
    assert Reliability.from_dict(json.loads(json.dumps(found.to_dict()))) == found

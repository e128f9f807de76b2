"""Drawing from scores: by hand, and by counting."""

import numpy as np
import pytest

from neural.modules.sampling import Sampler

SCORES = np.log(np.array([[0.5, 0.1, 0.3, 0.1]], dtype=np.float32))


def shares(**how):
    found = Sampler(1, **how).shares(SCORES)[0]
    return found / found.sum()


def test_temperature_one_is_what_the_network_says():
    assert shares() == pytest.approx([0.5, 0.1, 0.3, 0.1], abs=1e-6)


def test_a_low_temperature_sharpens():
    squared = np.array([0.25, 0.01, 0.09, 0.01])
    assert shares(temperature=0.5) == pytest.approx(squared / squared.sum(), abs=1e-6)


def test_the_best_few():
    assert shares(top_k=2) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)
    assert shares(top_k=1) == pytest.approx([1, 0, 0, 0])
    assert shares(top_k=200) == pytest.approx(shares())


def test_the_fewest_that_hold_a_share():
    assert shares(top_p=0.45) == pytest.approx([1, 0, 0, 0])
    assert shares(top_p=0.7) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)
    assert shares(top_p=0.85) == pytest.approx([0.5 / 0.9, 0.1 / 0.9, 0.3 / 0.9, 0], abs=1e-6), "the first of equals"
    assert shares(top_p=1.0) == pytest.approx(shares())


def test_few_and_share_together_leave_what_both_leave():
    assert shares(top_k=3, top_p=0.6) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)


def test_temperature_zero_takes_the_best():
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 3.0, 2.0]])
    assert Sampler(2, temperature=0).choose(scores).tolist() == [1, 0]


def test_ids_come_as_often_as_their_share():
    sampler = Sampler(4000, seed=7)
    drawn = sampler.choose(np.repeat(SCORES, 4000, axis=0))
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx([0.5, 0.1, 0.3, 0.1], abs=0.03)


def test_what_is_left_out_is_never_drawn():
    drawn = Sampler(2000, top_k=2).choose(np.repeat(SCORES, 2000, axis=0))
    assert set(drawn.tolist()) == {0, 2}
    assert set(Sampler(500, among=2).choose(np.repeat(SCORES, 500, axis=0)).tolist()) == {0, 1}


def test_a_sample_is_the_same_alone_and_among_others():
    rows = np.random.default_rng(0).normal(size=(6, 5, 11))
    together = Sampler(5, seed=3)
    alone = Sampler(1, seed=3, first=3)
    for scores in rows:
        assert together.choose(scores)[3] == alone.choose(scores[3:4])[0]


def test_samples_and_seeds_differ():
    scores = np.zeros((2, 1000))
    assert len({*Sampler(2).choose(scores).tolist(), *Sampler(2, seed=1).choose(scores).tolist()}) == 4


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        Sampler(1).choose(np.array([[0.0, np.nan]]))


@pytest.mark.parametrize(
    ("how", "says"),
    [({"temperature": -1}, "temperature"), ({"top_k": 0}, "top-k"), ({"top_p": 0}, "top-p"), ({"top_p": 1.5}, "top-p")],
)
def test_what_makes_no_sense_is_refused(how, says):
    with pytest.raises(ValueError, match=says):
        Sampler(1, **how)

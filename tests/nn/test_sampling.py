"""Sampling from scores: exact probabilities and frequencies."""

import numpy as np
import pytest

from neural.nn.sampling import Sampler

SCORES = np.log(np.array([[0.5, 0.1, 0.3, 0.1]], dtype=np.float32))


def probabilities(**options):
    unnormalized = Sampler(1, **options).unnormalized_probabilities(SCORES)[0]
    return unnormalized / unnormalized.sum()


def test_temperature_one_gives_the_probabilities_of_the_network():
    assert probabilities() == pytest.approx([0.5, 0.1, 0.3, 0.1], abs=1e-6)


def test_a_low_temperature_sharpens():
    squared = np.array([0.25, 0.01, 0.09, 0.01])
    assert probabilities(temperature=0.5) == pytest.approx(squared / squared.sum(), abs=1e-6)


def test_top_k_keeps_the_most_probable_ids():
    assert probabilities(top_k=2) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)
    assert probabilities(top_k=1) == pytest.approx([1, 0, 0, 0])
    assert probabilities(top_k=200) == pytest.approx(probabilities())


def test_top_p_keeps_the_smallest_set_with_that_probability():
    assert probabilities(top_p=0.45) == pytest.approx([1, 0, 0, 0])
    assert probabilities(top_p=0.7) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)
    assert probabilities(top_p=0.85) == pytest.approx(
        [0.5 / 0.9, 0.1 / 0.9, 0.3 / 0.9, 0], abs=1e-6
    ), "the first of equals"
    assert probabilities(top_p=1.0) == pytest.approx(probabilities())


def test_top_k_and_top_p_combine():
    assert probabilities(top_k=3, top_p=0.6) == pytest.approx([0.625, 0, 0.375, 0], abs=1e-6)


def test_temperature_zero_takes_the_best():
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 3.0, 2.0]])
    assert Sampler(2, temperature=0).sample(scores).tolist() == [1, 0]


def test_frequencies_match_the_probabilities():
    sampler = Sampler(4000, seed=7)
    drawn = sampler.sample(np.repeat(SCORES, 4000, axis=0))
    assert np.bincount(drawn, minlength=4) / 4000 == pytest.approx([0.5, 0.1, 0.3, 0.1], abs=0.03)


def test_excluded_ids_are_never_drawn():
    drawn = Sampler(2000, top_k=2).sample(np.repeat(SCORES, 2000, axis=0))
    assert set(drawn.tolist()) == {0, 2}
    assert set(Sampler(500, vocab_size=2).sample(np.repeat(SCORES, 500, axis=0)).tolist()) == {0, 1}


def test_a_sample_is_the_same_alone_and_in_a_batch():
    rows = np.random.default_rng(0).normal(size=(6, 5, 11))
    together = Sampler(5, seed=3)
    alone = Sampler(1, seed=3, first_sample_index=3)
    for scores in rows:
        assert together.sample(scores)[3] == alone.sample(scores[3:4])[0]


def test_samples_and_seeds_differ():
    scores = np.zeros((2, 1000))
    assert (
        len({*Sampler(2).sample(scores).tolist(), *Sampler(2, seed=1).sample(scores).tolist()}) == 4
    )


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        Sampler(1).sample(np.array([[0.0, np.nan]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_k": 0}, "top-k"),
        ({"top_p": 0}, "top-p"),
        ({"top_p": 1.5}, "top-p"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Sampler(1, **options)

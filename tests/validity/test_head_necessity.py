"""Error rates of decisions about the importance of heads (findings/head_necessity.py).

Changes of examples are simulated: with mean 0 or a known mean, normal or skewed, the same examples
at every checkpoint. What the models have learned is 2 nats, so the smallest relevant change is .02.
The seeds here are not those with which bounds were chosen.
"""

import numpy as np
import pytest

from neural.findings.head_necessity import decide_necessity, find_takeovers
from neural.runs.importance_file import ImportanceHeader, ImportanceRecord

EXAMPLES, CHECKPOINTS = 64, 20
SHARED = 0.7
"""Share of the variance of an example's change that is the same at all checkpoints."""


def draw_examples(draw, shape, skew):
    """Standardised values with a skewness; those of a gamma distribution if it is not 0."""
    if not skew:
        return draw.normal(size=shape)
    k = 4 / skew**2
    return np.sign(skew) * (draw.gamma(k, size=shape) - k) / np.sqrt(k)


def measure_heads(draw, means, *, sd=0.05, skew=0.0, examples=EXAMPLES, pair_effects=()):
    """Arguments of `write_importance_file`: mean and error of simulated changes.

    `means` are [step, layer, head]; `pair_effects` those of pairs of heads of the first layer with
    heads of the second, at the last step.
    """
    means = np.asarray(means, float)
    steps, *heads = means.shape
    shared = draw_examples(draw, (1, examples, *heads), skew)
    own = draw_examples(draw, (steps, examples, *heads), skew)
    changes = means[:, None] + sd * (np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * own)
    places = [((0, i), (1, j)) for i in range(heads[1]) for j in range(i)]
    pairs = []
    for (first, second), effect in zip(places, pair_effects, strict=False):
        both = effect + 0.01 * draw.normal()
        pairs.append((first, second, both))
    return {
        "change": changes.mean(axis=1),
        "se": changes.std(axis=1, ddof=1) / np.sqrt(examples),
        "loss": np.linspace(2.5, 1.3, steps) if steps > 1 else np.array([1.3]),
        "examples": examples,
        "pairs": pairs,
    }


def with_role(draw, effect):
    """A previous-token head, L1 h2, with an effect; the others are necessary."""
    masses = 0.1 + 0.01 * draw.normal(size=(CHECKPOINTS, 3, 4))
    masses[8:, 1, 2] += 0.7
    means = np.full((1, 3, 4), 0.2)
    means[0, 1, 2] = effect
    return {
        "arrays": {"previous_token_mass": masses},
        "importance": measure_heads(draw, means, sd=0.03),
    }


def draw_walks(draw, spread, checkpoints=CHECKPOINTS):
    """Heads whose importance drifts like a random walk, reflected at 0."""
    start = draw.exponential(0.06, size=(1, 4, 4))
    walks = np.cumsum(spread * draw.normal(size=(checkpoints, 4, 4)), axis=0)
    return measure_heads(draw, np.abs(start + walks), skew=1)


def draw_takeover(draw, size, *, drift=0.0, checkpoints=CHECKPOINTS):
    """L2 h1 takes over from L0 h3 at a random checkpoint; the others are constant."""
    means = np.repeat(draw.exponential(0.03, size=(1, 4, 4)), checkpoints, axis=0)
    is_before = np.arange(checkpoints) < draw.integers(2, checkpoints - 1)
    means[:, 0, 3], means[:, 2, 1] = size * is_before, size * ~is_before
    return measure_heads(draw, means + drift * draw.normal(size=means.shape), skew=1)


def decide(data):
    """Decisions about simulated heads, without a file."""
    change, count = data["change"], len(data["change"])
    heads = (change.shape[2],) * change.shape[1]
    layers = tuple(map(str, range(len(heads))))
    record = ImportanceRecord(
        header=ImportanceHeader("windows", "mean", data["examples"], layers, heads, 3.3),
        time=0.0,
        steps=50 * np.arange(1, count + 1),
        loss=data["loss"],
        loss_se=np.full(count, 0.01),
        change=change,
        se=data["se"],
        gradient=change,
        classes={},
        pairs=((),) * count,
    )
    return decide_necessity(record)


def share(repeats, create_data, is_found):
    """Share of simulated models in which something is found."""
    results = [
        bool(is_found(decide(create_data(np.random.default_rng((2026, index))))))
        for index in range(repeats)
    ]
    return float(np.mean(results))


@pytest.mark.parametrize("skew", [0, -1, 1])
def test_heads_without_effect_are_rarely_called_necessary(skew):
    # so noisy that the bound of 1 % does not help: the test over examples alone must hold
    rate = share(
        60,
        lambda draw: measure_heads(draw, np.zeros((1, 6, 6)), sd=1.0, skew=skew),
        lambda necessity: necessity.is_necessary.any(),
    )
    assert rate <= 0.1, rate  # more would happen once in 30 at 5 %


@pytest.mark.parametrize("skew", [0, -1, 1])
def test_heads_at_the_bound_are_rarely_called_without_effect(skew):
    rate = share(
        60,
        lambda draw: measure_heads(draw, np.full((1, 4, 4), 0.02), skew=skew),
        lambda necessity: necessity.is_without_effect.any(),
    )
    assert rate <= 0.1, rate


def test_the_onset_of_a_jump_is_found_within_one_checkpoint():
    def is_found(necessity):
        onset = necessity.find_onset_index(1, 1)
        return onset is not None and abs(onset - 9) <= 1

    means = np.zeros((CHECKPOINTS, 2, 4))
    means[9:, 1, 1] = 0.06
    assert share(40, lambda draw: measure_heads(draw, means), is_found) >= 0.9


@pytest.mark.parametrize("spread", [0.0, 0.005, 0.02, 0.05])
def test_drift_and_noise_are_rarely_called_a_takeover(spread):
    rate = share(40, lambda draw: draw_walks(draw, spread), find_takeovers)
    assert rate <= 0.1, rate


def test_takeovers_are_found():
    assert share(30, lambda draw: draw_takeover(draw, 0.1), find_takeovers) >= 0.8


def test_unrelated_jumps_coincide_no_more_often_than_the_evidence_says():
    def create_data(draw):
        fall, rise = draw.integers(2, CHECKPOINTS - 1, size=2)
        means = np.zeros((CHECKPOINTS, 2, 2))
        means[:fall, 0, 0], means[rise:, 1, 1] = 0.3, 0.3
        return measure_heads(draw, means)

    # 3 / 17 by construction: a checkpoint apart at most, of 17 possible ones
    assert share(60, create_data, find_takeovers) <= 0.3

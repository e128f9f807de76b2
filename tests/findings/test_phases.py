"""Phases of curves whose phases are known."""

from itertools import pairwise

import numpy as np
import pytest

from neural.findings.phases import find_phases


def interpolate(*points):
    """A piecewise linear curve, from epoch 1 on."""
    epochs, values = zip(*points, strict=True)
    return np.interp(range(1, epochs[-1] + 1), epochs, values)


def list_phases(curve, **options):
    return [(phase.name, phase.first, phase.last) for phase in find_phases(curve, **options)]


PUBLISHED = interpolate((1, 0.044), (5, 0.245), (15, 0.412), (20, 0.393), (23, 0.4462), (25, 0.44))


def test_the_published_training_has_its_published_phases():
    assert list_phases(PUBLISHED) == [
        ("rapid", 1, 5),
        ("steady", 5, 15),
        ("dip", 15, 20),
        ("recovery", 20, 23),
        ("best", 23, 23),
        ("after", 23, 25),
    ]
    changes = [round(phase.change, 3) for phase in find_phases(PUBLISHED)]
    assert changes[:4] == [0.201, 0.167, -0.019, 0.053]


def test_a_loss_has_the_same_phases_upside_down():
    assert list_phases(1 - PUBLISHED, larger_is_better=False) == list_phases(PUBLISHED)


def test_a_straight_rise_is_steady_to_its_best():
    assert list_phases(interpolate((1, 0.0), (9, 0.8))) == [("steady", 1, 9), ("best", 9, 9)]


def test_a_flat_interval_before_the_last_rise_is_a_plateau():
    curve = interpolate((1, 0.1), (4, 0.5), (12, 0.495), (13, 0.52), (18, 0.7))
    assert list_phases(curve) == [
        ("steady", 1, 4),
        ("plateau", 4, 13),
        ("steady", 13, 18),
        ("best", 18, 18),
    ]


def test_a_slow_fall_before_a_cliff_is_a_plateau_and_not_a_part_of_the_rapid_fall():
    # validation losses of examples/induction, where heads begin to copy at step 400
    losses = [3.697, 3.69, 3.677, 3.643, 3.618, 3.6, 3.53, 2.985, 2.379, 2.29, 2.246, 2.232, 2.211]
    losses += [2.21, 2.193, 2.187, 2.173, 2.171, 2.164, 2.15]
    assert list_phases(losses, larger_is_better=False, standard_error=0.004) == [
        ("plateau", 1, 7),
        ("rapid", 7, 10),
        ("steady", 10, 20),
        ("best", 20, 20),
    ]
    curve = interpolate((1, 0.0), (5, 0.4), (17, 0.42), (20, 0.9), (30, 0.95))
    assert list_phases(curve) == [
        ("rapid", 1, 5),
        ("plateau", 5, 17),
        ("rapid", 17, 20),
        ("steady", 20, 30),
        ("best", 30, 30),
    ]


def test_a_smooth_decay_has_no_plateau_and_a_straight_noisy_fall_is_not_rapid():
    random, count = np.random.default_rng(0), 100
    names = {"decay": [], "straight": []}
    for _ in range(count):
        decay = 2 + 2 * np.exp(-np.arange(20) / 4) + random.normal(0, 0.01, 20)
        straight = np.linspace(3, 2.8, 30) + random.normal(0, 0.02, 30)
        for kind, curve in {"decay": decay, "straight": straight}.items():
            phases = list_phases(curve, larger_is_better=False)
            names[kind] += {name for name, _, _ in phases}
    assert names["decay"].count("plateau") <= 0.05 * count
    assert names["decay"].count("rapid") >= 0.95 * count
    assert names["straight"].count("rapid") <= 0.1 * count


def test_after_a_recovery_a_long_climb_is_steady_again():
    curve = interpolate((1, 0.0), (5, 0.5), (8, 0.2), (10, 0.55), (20, 0.9))
    assert list_phases(curve) == [
        ("steady", 1, 5),
        ("dip", 5, 8),
        ("recovery", 8, 10),
        ("steady", 10, 20),
        ("best", 20, 20),
    ]


def test_a_single_bad_epoch_is_not_a_phase():
    curve = interpolate((1, 0.0), (12, 0.6))
    curve[5] -= 0.1
    assert list_phases(curve) == [("steady", 1, 12), ("best", 12, 12)]


def test_a_curve_that_only_falls_had_its_best_first():
    assert list_phases([0.5, 0.4, 0.3]) == [("best", 1, 1), ("after", 1, 3)]


def test_a_curve_that_stays_within_its_noise_has_no_phases():
    random = np.random.default_rng(1)
    assert not find_phases(2 + 0.1 * random.normal(size=20), larger_is_better=False)
    # a learning rate of 1e-12
    assert not find_phases(np.linspace(2, 2 - 1e-9, 20), larger_is_better=False)
    assert not find_phases(np.linspace(2, 1.9, 20), larger_is_better=False, standard_error=0.1)


@pytest.mark.parametrize("curve", [[], [0.3]])
def test_one_score_has_no_phases(curve):
    assert find_phases(curve) == []


def test_every_epoch_is_in_a_phase_and_phases_meet():
    random = np.random.default_rng(0)
    curves = [np.cumsum(random.normal(0.2, 0.3, random.integers(2, 40))) for _ in range(300)]
    all_phases = [phases for phases in map(find_phases, curves) if phases]
    assert len(all_phases) > 150
    for phases in all_phases:
        assert phases[0].first == 1
        assert all(phase.last == following.first for phase, following in pairwise(phases))
        assert sum(phase.name == "best" for phase in phases) == 1


def test_nan_is_refused():
    with pytest.raises(ValueError, match="finite"):
        find_phases([0.1, float("nan")])


def test_few_scores_are_compared_with_the_error_of_their_differences():
    curve = [2.02, 1.75, 1.64, 1.61]  # it bends too much to show its noise
    assert list_phases(curve, larger_is_better=False) == []
    assert list_phases(curve, larger_is_better=False, standard_error=0.01)[-1] == ("best", 4, 4)
    assert list_phases(curve, larger_is_better=False, standard_error=0.1) == []

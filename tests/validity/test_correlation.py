"""Correlation over seeds on series whose truth is known: how often each verdict is right."""

from collections import Counter

import numpy as np
import pytest

from neural.views.correlation import Curve, correlate

STEPS, REPEATS = 60, 60
AT = np.arange(1, STEPS + 1) * 25
NOISE = 0.02
TREND = 5 * (1 - np.exp(-np.linspace(0, 4, STEPS)))


def measured(draw, signals, *, halves=True):
    """What a run keeps of signals (seed, step): two halves with noise of their own, and their mean."""
    both = signals[None] + NOISE * np.sqrt(2) * draw.normal(size=(2, *signals.shape))
    return [
        Curve(AT, (one + other) / 2, (one, other) if halves else None) for one, other in zip(*both, strict=True)
    ]


def walks(draw, seeds, size):
    return np.cumsum(size * draw.normal(size=(seeds, STEPS)), axis=1)


def independent_walks(draw, seeds):
    return TREND + walks(draw, seeds, 0.05), 0.3 * TREND + walks(draw, seeds, 0.05)


def noise_alone(draw, seeds):
    return np.tile(TREND, (seeds, 1)), np.tile(0.3 * TREND, (seeds, 1))


def independent_speeds(draw, seeds):
    one, other = 1 + 0.1 * draw.normal(size=(2, seeds, 1))
    return one * TREND, 0.3 * other * TREND


def half_the_square(draw, seeds):
    x = TREND + walks(draw, seeds, 0.05)
    return x, x**2 / 2


def half_the_square_slowly(draw, seeds):
    x = TREND + walks(draw, seeds, 0.003)
    return x, x**2 / 2


def half_the_square_without_own_variation(draw, seeds):
    x = np.tile(TREND, (seeds, 1))
    return x, x**2 / 2


def half_the_square_by_speed(draw, seeds):
    x = TREND * (1 + 0.1 * draw.normal(size=(seeds, 1)))
    return x, x**2 / 2


def related_slowly_alone(draw, seeds):
    """Both follow the same slow walk of a seed; what happens from step to step is nearly independent."""
    slow, (one, other) = walks(draw, seeds, 0.05), 0.1 * draw.normal(size=(2, seeds, STEPS))
    return TREND + slow + one, 0.3 * TREND + slow + other


def independent_jitter(draw, seeds):
    one, other = 0.1 * draw.normal(size=(2, seeds, STEPS))
    return TREND + one, 0.3 * TREND + other


def verdicts(scenario, *, seeds=5, repeats=REPEATS, halves=True):
    found = Counter()
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        one, other = (measured(draw, signals, halves=halves) for signals in scenario(draw, seeds))
        found[correlate(list(zip(one, other, strict=True)), permutations=500).verdict] += 1
    return {name: count / repeats for name, count in found.items()}


@pytest.mark.parametrize("scenario", [independent_walks, noise_alone, independent_speeds, independent_jitter])
@pytest.mark.parametrize("halves", [True, False])
def test_unrelated_series_are_rarely_called_related(scenario, halves):
    assert verdicts(scenario, halves=halves).get("related", 0) <= 0.09   # 5 % and chance, of 60


@pytest.mark.parametrize(
    "scenario",
    [
        half_the_square,
        half_the_square_slowly,
        half_the_square_by_speed,
        half_the_square_without_own_variation,
        related_slowly_alone,
    ],
)
@pytest.mark.parametrize("halves", [True, False])
def test_related_series_are_never_called_unrelated(scenario, halves):
    assert verdicts(scenario, halves=halves).get("unrelated", 0) <= 0.02


@pytest.mark.parametrize(
    ("scenario", "seeds", "power"),
    [(half_the_square, 5, 0.95), (half_the_square_slowly, 5, 0.4), (half_the_square_by_speed, 10, 0.6)],
)
def test_a_relation_is_found_where_seeds_differ_enough(scenario, seeds, power):
    assert verdicts(scenario, seeds=seeds)["related"] >= power


@pytest.mark.parametrize(("scenario", "seeds", "power"), [(independent_jitter, 7, 0.5), (independent_walks, 20, 0.3)])
def test_unrelated_is_said_where_it_would_have_been_seen(scenario, seeds, power):
    assert verdicts(scenario, seeds=seeds, repeats=30)["unrelated"] >= power


@pytest.mark.parametrize("scenario", [noise_alone, half_the_square_without_own_variation])
def test_seeds_that_do_not_differ_decide_nothing(scenario):
    assert verdicts(scenario).get("unrelated", 0) <= 0.02


def test_without_repeated_measurements_nothing_is_called_unrelated():
    assert verdicts(independent_walks, halves=False).get("unrelated", 0) == 0


def rates(repeats=200):
    """For the table of docs/analysis.md: "related" and "unrelated", 60 snapshots."""
    rows = []
    for null, truth, seeds in (
        (independent_walks, half_the_square, 5),
        (independent_speeds, half_the_square_by_speed, 5),
        (independent_jitter, related_slowly_alone, 5),
        (independent_jitter, related_slowly_alone, 10),
    ):
        wrong, right = (verdicts(scenario, seeds=seeds, repeats=repeats) for scenario in (null, truth))
        names = [scenario.__name__.replace("_", " ") for scenario in (null, truth)]
        for verdict, (false, true) in (("related", (wrong, right)), ("unrelated", (right, wrong))):
            rows.append(
                {
                    "what": f'correlation, "{verdict}", {seeds} seeds',
                    "null": names[verdict == "unrelated"],
                    "truth": names[verdict == "related"],
                    "false_positive_rate": false.get(verdict, 0.0),
                    "power": true.get(verdict, 0.0),
                    "repeats": repeats,
                }
            )
    return rows

"""Error rates of the correlation over seeds, on series whose truth is known."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from neural.stats.correlation import Curve, correlate

STEPS, REPEATS = 60, 60
STEP_NUMBERS = np.arange(1, STEPS + 1) * 25
NOISE = 0.02
TREND = 5 * (1 - np.exp(-np.linspace(0, 4, STEPS)))


def create_curves(draw, signals, *, halves=True):
    """Curves of signals (seed, step): two halves with independent noise, and their mean."""
    noisy = signals[None] + NOISE * np.sqrt(2) * draw.normal(size=(2, *signals.shape))
    return [
        Curve(STEP_NUMBERS, (first + second) / 2, (first, second) if halves else None)
        for first, second in zip(*noisy, strict=True)
    ]


def random_walks(draw, seeds, size):
    return np.cumsum(size * draw.normal(size=(seeds, STEPS)), axis=1)


def independent_walks(draw, seeds):
    return TREND + random_walks(draw, seeds, 0.05), 0.3 * TREND + random_walks(draw, seeds, 0.05)


def noise_alone(draw, seeds):
    return np.tile(TREND, (seeds, 1)), np.tile(0.3 * TREND, (seeds, 1))


def independent_speeds(draw, seeds):
    first, second = 1 + 0.1 * draw.normal(size=(2, seeds, 1))
    return first * TREND, 0.3 * second * TREND


def half_the_square(draw, seeds):
    x = TREND + random_walks(draw, seeds, 0.05)
    return x, x**2 / 2


def half_the_square_slowly(draw, seeds):
    x = TREND + random_walks(draw, seeds, 0.003)
    return x, x**2 / 2


def half_the_square_without_own_variation(draw, seeds):
    x = np.tile(TREND, (seeds, 1))
    return x, x**2 / 2


def half_the_square_by_speed(draw, seeds):
    x = TREND * (1 + 0.1 * draw.normal(size=(seeds, 1)))
    return x, x**2 / 2


def related_slowly_only(draw, seeds):
    """Both follow the same slow random walk; changes from step to step are nearly independent."""
    slow = random_walks(draw, seeds, 0.05)
    first, second = 0.1 * draw.normal(size=(2, seeds, STEPS))
    return TREND + slow + first, 0.3 * TREND + slow + second


def independent_jitter(draw, seeds):
    first, second = 0.1 * draw.normal(size=(2, seeds, STEPS))
    return TREND + first, 0.3 * TREND + second


@cache
def verdict_rates(scenario, *, seeds=5, repeats=REPEATS, halves=True):
    counts = Counter()
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        first, second = (
            create_curves(draw, signals, halves=halves) for signals in scenario(draw, seeds)
        )
        counts[correlate(list(zip(first, second, strict=True)), permutations=500).verdict] += 1
    return {name: count / repeats for name, count in counts.items()}


@pytest.mark.parametrize(
    "scenario", [independent_walks, noise_alone, independent_speeds, independent_jitter]
)
@pytest.mark.parametrize("halves", [True, False])
def test_unrelated_series_are_rarely_called_related(scenario, halves):
    assert verdict_rates(scenario, halves=halves).get("related", 0) <= 0.09  # 5 % and chance, of 60


@pytest.mark.parametrize(
    "scenario",
    [
        half_the_square,
        half_the_square_slowly,
        half_the_square_by_speed,
        half_the_square_without_own_variation,
        related_slowly_only,
    ],
)
@pytest.mark.parametrize("halves", [True, False])
def test_related_series_are_never_called_unrelated(scenario, halves):
    assert verdict_rates(scenario, halves=halves).get("unrelated", 0) <= 0.02


@pytest.mark.parametrize(
    ("scenario", "seeds", "power"),
    [
        (half_the_square, 5, 0.95),
        (half_the_square_slowly, 5, 0.4),
        (half_the_square_by_speed, 10, 0.6),
    ],
)
def test_a_relation_is_found_if_seeds_differ_enough(scenario, seeds, power):
    assert verdict_rates(scenario, seeds=seeds)["related"] >= power


@pytest.mark.parametrize(
    ("scenario", "seeds", "power"), [(independent_jitter, 7, 0.5), (independent_walks, 20, 0.3)]
)
def test_unrelated_series_are_called_unrelated_with_enough_power(scenario, seeds, power):
    assert verdict_rates(scenario, seeds=seeds, repeats=30)["unrelated"] >= power


@pytest.mark.parametrize("scenario", [noise_alone, half_the_square_without_own_variation])
def test_seeds_that_do_not_differ_decide_nothing(scenario):
    assert verdict_rates(scenario).get("unrelated", 0) <= 0.02


def test_without_repeated_measurements_nothing_is_called_unrelated():
    assert verdict_rates(independent_walks, halves=False).get("unrelated", 0) == 0


def rates(repeats=200):
    """For the table of docs/analysis.md: "related" and "unrelated", 60 snapshots."""
    rows = []
    for null, truth, seeds in (
        (independent_walks, half_the_square, 5),
        (independent_speeds, half_the_square_by_speed, 5),
        (independent_jitter, related_slowly_only, 5),
        (independent_jitter, related_slowly_only, 10),
    ):
        null_rates, truth_rates = (
            verdict_rates(scenario, seeds=seeds, repeats=repeats) for scenario in (null, truth)
        )
        names = [scenario.__name__.replace("_", " ") for scenario in (null, truth)]
        for verdict, (false, true) in (
            ("related", (null_rates, truth_rates)),
            ("unrelated", (truth_rates, null_rates)),
        ):
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

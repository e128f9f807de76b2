"""Optimism of the selected setting of simulated sweeps, before and after confirmation."""

import math
from pathlib import Path

import numpy as np
import pytest

from neural.workflows.sweep import Sweep, TrialRecord
from neural.workflows.sweep_trials import Trial

SEED_STD, OWN_STD, STEP_STD = 0.05, 0.1, 0.05
"""Standard deviations of a loss: of a seed for all settings, for one setting, per validation."""
VALIDATIONS = 10
TRUTH = 1.0


def fill_results(rows, draw, better, shared):
    """Fill in the best and the last validation of simulated trainings."""
    for row in rows:
        effect = shared.setdefault(row.trial.seed, SEED_STD * draw.normal())
        mean = TRUTH - better * (row.trial.point["setting"] == 0)
        level = mean + effect + OWN_STD * draw.normal()
        validations = level + STEP_STD * draw.normal(size=VALIDATIONS)
        row.state = "finished"
        row.score, row.last_score = float(validations.min()), float(validations[-1])


def simulate_sweep(draw, *, settings=12, seeds=3, better=0.0, confirm=5):
    """A sweep of equal settings, except that the first is better by `better`."""
    rows = [
        TrialRecord(
            Trial(f"{setting}_seed-{seed}", seed, {"setting": setting}, (f"training.seed={seed}",))
        )
        for setting in range(settings)
        for seed in range(seeds)
    ]
    sweep, shared = Sweep(Path(), Path(), {}, rows), {}
    fill_results(rows, draw, better, shared)
    fill_results(sweep.add_confirmation(confirm), draw, better, shared)
    return sweep


def simulate(repeats, **scenario):
    """Means over simulated sweeps without any difference between settings."""
    sums = np.zeros(6)
    for repeat in range(repeats):
        sweep = simulate_sweep(np.random.default_rng(repeat), **scenario)
        points, confirmation = sweep.rank_points(), sweep.summarize_confirmation()
        estimate = confirmation.estimates[0]
        sums += (
            TRUTH - points[0].mean,
            sweep.estimate_selection_bias(points).optimism,
            TRUTH - estimate.value,
            estimate.low <= TRUTH <= estimate.high,
            any(
                comparison.verdict != "undecided" for comparison in sweep.compare_with_best(points)
            ),
            confirmation.comparison.verdict != "undecided",
        )
    names = (
        "bias",
        "reported_bias",
        "confirmed_bias",
        "coverage",
        "false_in_table",
        "false_confirmed",
    )
    return dict(zip(names, (sums / repeats).tolist(), strict=True))


def power(repeats, **scenario):
    """Share of sweeps in which the better setting is selected and confirmed."""
    hits = 0
    for repeat in range(repeats):
        confirmation = simulate_sweep(
            np.random.default_rng(repeat), **scenario
        ).summarize_confirmation()
        is_first = confirmation.points[0].values == {"setting": 0}
        hits += is_first and confirmation.comparison.verdict == "worse"
    return hits / repeats


def rates(repeats=1000):
    """Bias of the selected setting and error rates, for the table in docs/analysis.md."""
    rows, repeats = [], max(repeats, 1000)
    for settings, seeds in ((12, 3), (3, 3), (12, 5)):
        means = simulate(repeats, settings=settings, seeds=seeds)
        common = {"null": "all settings equal", "repeats": repeats}
        what = f"sweep, {settings} settings × {seeds} seeds"
        unit = math.hypot(OWN_STD, STEP_STD)
        rows += [
            {
                **common,
                "what": f"{what}: a verdict in the table",
                "false_positive_rate": means["false_in_table"],
                "truth": f"the selected mean lies {means['bias'] / unit:.2f} "
                "SD of a score below the truth",
            },
            {
                **common,
                "what": f"{what}: confirmed with 5 fresh seeds",
                "false_positive_rate": means["false_confirmed"],
                "truth": f"the confirmed mean lies {means['confirmed_bias'] / unit:.2f} "
                "SD below the truth",
                "coverage": means["coverage"],
            },
        ]
    rows.append(
        {
            "what": "sweep, 12 settings × 3 seeds: confirmed with 5 fresh seeds",
            "null": "all settings equal",
            "false_positive_rate": rows[1]["false_positive_rate"],
            "truth": "one setting is better by 4 SD of a score",
            "power": power(repeats // 3, better=4 * math.hypot(OWN_STD, STEP_STD)),
            "repeats": repeats // 3,
        }
    )
    return rows


def select_with_failures(repeats, *, failed, unstable=4, settings=12, seeds=5):
    """Shares of sweeps of equal settings that select one of the first `unstable`, and decide.

    Those settings fail with `failed` of their seeds.
    """
    selected = decided = 0
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        sweep = simulate_sweep(draw, settings=settings, seeds=seeds, confirm=1)
        sweep.rows = [row for row in sweep.rows if not row.is_confirmation]
        for setting in range(unstable):
            for seed in draw.choice(seeds, failed, replace=False):
                row = sweep.rows[setting * seeds + int(seed)]
                row.state = "failed"
        points = sweep.rank_points()
        selected += points[0].values["setting"] < unstable
        verdicts = [comparison.verdict for comparison in sweep.compare_with_best(points)]
        decided += any(verdict != "undecided" for verdict in verdicts)
    return selected / repeats, decided / repeats


def test_settings_with_failed_seeds_are_never_selected_nor_falsely_decided():
    for failed in (1, 4):
        selected, decided = select_with_failures(100, failed=failed)
        assert selected == 0
        assert decided <= 0.1


@pytest.fixture(scope="module")
def equal_settings():
    return simulate(400)


def test_the_selected_mean_is_optimistic_and_the_bias_is_reported(equal_settings):
    """Twice: 0.94 SD of a score by the choice among 12, and by the best of 10 validations."""
    by_choice = 0.94 * math.hypot(
        OWN_STD, 0.6 * STEP_STD
    )  # the minimum of 10 values varies less than one value
    by_steps = 1.54 * STEP_STD
    assert equal_settings["bias"] == pytest.approx(by_choice + by_steps, rel=0.1)
    assert equal_settings["reported_bias"] == pytest.approx(by_choice, rel=0.1)


def test_the_confirmed_mean_is_not_optimistic(equal_settings):
    # two standard errors of 400 means over 5 seeds
    error = math.sqrt((SEED_STD**2 + OWN_STD**2 + STEP_STD**2) / 5 / 400)
    assert abs(equal_settings["confirmed_bias"]) < 2 * error
    assert 0.92 <= equal_settings["coverage"] <= 0.985


def test_equal_settings_rarely_get_a_verdict(equal_settings):
    tolerance = 3 * math.sqrt(0.05 * 0.95 / 400)
    assert equal_settings["false_in_table"] <= 0.05 + tolerance
    assert equal_settings["false_confirmed"] <= 0.05 + tolerance


def test_a_better_setting_is_confirmed():
    assert power(60, better=4 * math.hypot(OWN_STD, STEP_STD)) >= 0.7

"""Error rates and power of focus reports on results whose truth is known."""

import math

import numpy as np
import pytest

from neural.findings.focus_claims import LVML_HARD_HYBRID, SAIF_TOLERANCE, evaluate_claims
from neural.findings.focus_results import FocusResult, group_results

SIZES = (5, 10, 20)
SEED_STD, OWN_STD = 0.01, 0.008
"""Standard deviations of the effect of a seed on all paradigms, and on one of them."""
VALIDATE_EVERY = 10
"""Steps; times are multiples of it."""
NO_DIFFERENCE = dict.fromkeys(("soft", "hard", "lvml", "hybrid", LVML_HARD_HYBRID, "auto"), 0.0)
AT_THE_THRESHOLDS = NO_DIFFERENCE | {"hybrid": -SAIF_TOLERANCE, LVML_HARD_HYBRID: -SAIF_TOLERANCE}
"""Every claim is exactly at its threshold: all verdicts are due to chance."""


def noise(draw, shape, kind):
    """Noise with mean 0 and variance 1."""
    return {
        "normal": draw.normal,
        "heavy tails": lambda size: draw.standard_t(5, size=size) / math.sqrt(5 / 3),
        "skewed": lambda size: (draw.gamma(4, size=size) - 4) / 2,
    }[kind](size=shape)


def simulate_report(draw, saif, *, seeds=5, kind="normal", delay=0.0, never=0.0, hard_never=0.0):
    """Verdicts of one comparison; `saif` by paradigm is the truth.

    `delay`: additional steps of hard to 90 %; `never`, `hard_never`: shares that never reach it.
    """
    results = []
    for m in SIZES:
        shared = SEED_STD * noise(draw, (2, seeds), kind)
        for paradigm, mean in saif.items():
            own = OWN_STD * noise(draw, (4, seeds), kind)
            extra_steps = delay if paradigm == "hard" else 0.0
            times = 80 + extra_steps + 1500 * (shared[1] + own[1])
            times = VALIDATE_EVERY * np.ceil(np.maximum(times, VALIDATE_EVERY) / VALIDATE_EVERY)
            share = max(never, hard_never if paradigm == "hard" else 0.0)
            times[draw.random(seeds) < share] = math.nan
            calls = m / 2 if paradigm == "auto" else m
            for seed in range(seeds):
                scores = {
                    "saif": 0.9 + mean + shared[0, seed] + own[0, seed],
                    "focus_confidence": 0.9 + own[2, seed],
                    "steps_to_target": times[seed],
                    "classifier_calls": calls * (1 + own[3, seed]),
                    "classifier_calls_range": 1.0,
                }
                results.append(
                    FocusResult(
                        run=f"{paradigm}-{m}-{seed}",
                        paradigm=paradigm,
                        segments=m,
                        seed=seed,
                        classes=("a", "b"),
                        scores=scores,
                        heat_map=np.eye(2),
                        examples={},
                    )
                )
    return evaluate_claims(group_results(results))


def share_with_a_verdict(repeats, **scenario):
    """Share of reports with any verdict, although all differences are due to chance."""
    decided = 0
    for repeat in range(repeats):
        verdicts = simulate_report(np.random.default_rng(repeat), AT_THE_THRESHOLDS, **scenario)
        decided += any(verdict.supported != "undecided" for verdict in verdicts)
    return decided / repeats


def power(repeats, saif, claim, **scenario):
    """Share of verdicts "yes" on a true claim."""
    supported = [
        verdict.supported == "yes"
        for repeat in range(repeats)
        for verdict in simulate_report(np.random.default_rng(repeat), saif, **scenario)
        if verdict.claim.startswith(claim)
    ]
    return float(np.mean(supported))


def lower_soft(effect):
    """Soft is below LVML by `effect` standard deviations of a paired difference."""
    return NO_DIFFERENCE | {"soft": -effect * OWN_STD * math.sqrt(2)}


def rates(repeats=300):
    """False-positive rates and power, for the table in docs/analysis.md."""
    rows = []
    for seeds, effect in ((5, 8.0), (10, 3.0), (20, 1.5)):
        rows.append(
            {
                "what": f"focus report, {seeds} seeds",
                "null": "every paradigm at the border of every claim; any of 33 verdicts",
                "false_positive_rate": share_with_a_verdict(repeats, seeds=seeds),
                "truth": f"soft {effect:g} SD of a paired difference below LVML",
                "power": power(repeats // 3, lower_soft(effect), "soft then stalls", seeds=seeds),
                "repeats": repeats,
            }
        )
    rows.append(
        {
            "what": "focus report, steps to 90 % with seeds that never get there, 20 seeds",
            "null": "30 % of the seeds of every paradigm never get there; any of 33 verdicts",
            "false_positive_rate": share_with_a_verdict(repeats, seeds=20, never=0.3),
            "truth": "hard never gets there in 70 % of its seeds, soft always does",
            "power": power(
                repeats // 3, NO_DIFFERENCE, "soft starts fast", seeds=20, hard_never=0.7
            ),
            "repeats": repeats,
        }
    )
    return rows


@pytest.mark.parametrize(
    "scenario",
    [
        {},
        {"kind": "heavy tails"},
        {"kind": "skewed"},
        {"never": 0.3},
        {"seeds": 10},
        {"seeds": 10, "never": 0.3},
    ],
    ids=str,
)
def test_few_reports_without_a_difference_have_a_verdict(scenario):
    repeats = 150
    # 5 % and three standard errors of the simulation
    assert share_with_a_verdict(repeats, **scenario) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repeats)


@pytest.mark.parametrize(
    ("seeds", "effect", "min_power"), [(5, 8.0, 0.65), (10, 3.0, 0.75), (20, 1.5, 0.8)]
)
def test_a_difference_is_found(seeds, effect, min_power):
    assert power(15, lower_soft(effect), "soft then stalls", seeds=seeds) >= min_power


def test_seeds_that_never_reach_the_target_are_evidence():
    scenario = {"seeds": 20, "hard_never": 0.7}
    assert power(15, NO_DIFFERENCE, "soft starts fast", **scenario) >= 0.6


def test_a_delay_is_found():
    assert power(15, NO_DIFFERENCE, "soft starts fast", seeds=10, delay=80.0) >= 0.8

"""Reports of the focus comparison on results whose truth is known: false verdicts, and power."""

import math

import numpy as np
import pytest

from neural.views.focus_claims import LVML_HARD, NEAR, judged
from neural.views.focus_results import Result, grouped

SIZES = (5, 10, 20)
SEED_STD, OWN_STD = 0.01, 0.008
"""Standard deviations of a score: what a seed does to all paradigms, and what it does to one of them."""
EVERY = 10
"""Steps between validations: times are multiples of it."""
NO_DIFFERENCE = dict.fromkeys(("soft", "hard", "lvml", "hybrid", LVML_HARD, "auto"), 0.0)
AT_THE_BORDERS = NO_DIFFERENCE | {"hybrid": -NEAR, LVML_HARD: -NEAR}
"""Every claim exactly at the border of what it says: all verdicts are chance."""


def noise(draw, shape, kind):
    """Of variance 1 around 0."""
    return {
        "normal": draw.normal,
        "heavy tails": lambda size: draw.standard_t(5, size=size) / math.sqrt(5 / 3),
        "skewed": lambda size: (draw.gamma(4, size=size) - 4) / 2,
    }[kind](size=shape)


def report(draw, saif, *, seeds=5, kind="normal", delay=0.0, never=0.0, hard_never=0.0):
    """The verdicts of one comparison; `saif` by paradigm is the truth.

    `delay`: steps that hard takes longer to 90 %; `never`, `hard_never`: shares that do not get there.
    """
    results = []
    for m in SIZES:
        shared = SEED_STD * noise(draw, (2, seeds), kind)
        for paradigm, mean in saif.items():
            own = OWN_STD * noise(draw, (4, seeds), kind)
            late = delay if paradigm == "hard" else 0.0
            times = 80 + late + 1500 * (shared[1] + own[1])
            times = EVERY * np.ceil(np.maximum(times, EVERY) / EVERY)
            share = max(never, hard_never if paradigm == "hard" else 0.0)
            times[draw.random(seeds) < share] = math.nan
            half = m / 2 if paradigm == "auto" else m
            for seed in range(seeds):
                scores = {
                    "saif": 0.9 + mean + shared[0, seed] + own[0, seed],
                    "focus_confidence": 0.9 + own[2, seed],
                    "steps_to": times[seed],
                    "calls": half * (1 + own[3, seed]),
                    "calls_range": 1.0,
                }
                results.append(
                    Result(
                        run=f"{paradigm}-{m}-{seed}",
                        paradigm=paradigm,
                        segments=m,
                        seed=seed,
                        classes=("a", "b"),
                        scores=scores,
                        heat=np.eye(2),
                        shown={},
                    )
                )
    return judged(grouped(results))


def share_with_a_verdict(repeats, **scenario):
    """Reports in which anything at all is decided, though everything is chance."""
    decided = 0
    for repeat in range(repeats):
        verdicts = report(np.random.default_rng(repeat), AT_THE_BORDERS, **scenario)
        decided += any(verdict.supported != "undecided" for verdict in verdicts)
    return decided / repeats


def power(repeats, saif, claim, **scenario):
    """Share of the verdicts "yes" about a claim that is true."""
    supported = [
        verdict.supported == "yes"
        for repeat in range(repeats)
        for verdict in report(np.random.default_rng(repeat), saif, **scenario)
        if verdict.claim.startswith(claim)
    ]
    return float(np.mean(supported))


def lower_soft(effect):
    """Soft below LVML by so many standard deviations of a paired difference."""
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
                repeats // 3, NO_DIFFERENCE, "soft is quick", seeds=20, hard_never=0.7
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


@pytest.mark.parametrize(("seeds", "effect", "wanted"), [(5, 8.0, 0.65), (10, 3.0, 0.75), (20, 1.5, 0.8)])
def test_a_difference_is_found(seeds, effect, wanted):
    assert power(15, lower_soft(effect), "soft then stalls", seeds=seeds) >= wanted


def test_seeds_that_never_get_there_are_evidence():
    scenario = {"seeds": 20, "hard_never": 0.7}
    assert power(15, NO_DIFFERENCE, "soft is quick", **scenario) >= 0.6


def test_a_delay_is_found():
    assert power(15, NO_DIFFERENCE, "soft is quick", seeds=10, delay=80.0) >= 0.8

"""Coverage of 95 % intervals of segmentation scores, on independent and on composed documents."""

import numpy as np
import pytest

from neural.tasks.segmentation.score_table import estimate_lift
from tests.validity.segmenters import (
    METRICS,
    World,
    create_documents,
    estimate_score,
    predict,
    true_scores,
)

REPEATS = 150
"""Coverage is known to ±.036 (two standard errors)."""
SETS = {
    "10 independent documents": (World(sources=0.5, documents=0.5), 10, None),
    "40 independent documents": (World(sources=0.5, documents=0.5), 40, None),
    "20 documents of 8 sources": (World(sources=0.5), 20, 8),
    "30 documents of 30 sources": (World(sources=0.7, documents=0.3), 30, 30),
    "20 documents of 8 sources that do not differ": (World(), 20, 8),
}
LARGE_SETS = {"300 documents of 124 sources": (World(sources=0.7, documents=0.3), 300, 124)}
"""As many as Choi's; for `rates` only, at a third of the repeats."""
BASELINES = {"three equally good": (0.0, 0.0, 0.0), "one clearly best": (0.0, -1.5, -1.5)}
"""Added to the log-odds of the hits of each baseline."""


def coverage(case, repeats, scores=tuple(METRICS)):
    """Coverage of every score, and that of intervals that ignore shared sources."""
    world, count, shared = (SETS | LARGE_SETS)[case]
    truth = true_scores(world)
    hits = {name: [] for name in scores}
    plain = {name: [] for name in scores}
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        documents = create_documents(world, draw, count, shared)
        predictions = predict(world, draw, documents)
        for name in scores:
            for sources, outcomes in ((shared, hits), (None, plain)):
                interval = estimate_score(documents, predictions, sources, name).estimate("share")
                outcomes[name].append(interval.low <= truth[name] <= interval.high)
    return {name: (np.mean(hits[name]), np.mean(plain[name])) for name in scores}


def lift_errors(baselines, case, repeats, *, better=0.0, score="boundary_f1"):
    """Shares of intervals of a lift that lie above the truth, below it, and above 0."""
    world, count, shared = SETS[case]
    best = max(true_scores(world, extra)[score] for extra in BASELINES[baselines])
    truth = true_scores(world, better)[score] - best
    outcomes = []
    for repeat in range(repeats):
        draw = np.random.default_rng(repeat)
        documents = create_documents(world, draw, count, shared)
        model, *others = (
            estimate_score(documents, predict(world, draw, documents, extra), shared, score)
            for extra in (better, *BASELINES[baselines])
        )
        lift = estimate_lift(model, dict(enumerate(others)), "high", resamples=300).difference
        outcomes.append((lift.low > truth, lift.high < truth, lift.low > 0))
    return np.mean(outcomes, axis=0)


@pytest.mark.parametrize("case", SETS)
def test_intervals_cover_the_true_score(case):
    slack = 2.5 * np.sqrt(0.05 * 0.95 / REPEATS)
    for name, (covered, _) in coverage(case, REPEATS, ("boundary_f1", "pk")).items():
        assert 0.93 - slack <= covered, (name, covered)
        assert covered <= 0.99, (name, covered)


def test_intervals_that_ignore_shared_sources_are_too_narrow():
    covered = coverage("20 documents of 8 sources", 80, ("boundary_f1", "pk"))
    assert covered["boundary_f1"][1] < 0.88
    assert covered["pk"][1] < 0.92


@pytest.mark.parametrize("case", ["40 independent documents", "20 documents of 8 sources"])
@pytest.mark.parametrize("baselines", BASELINES)
def test_a_model_as_good_as_the_best_baseline_is_rarely_called_better(baselines, case):
    too_high, too_low, better = lift_errors(baselines, case, 100)
    assert better <= 0.025 + 0.04
    assert too_high + too_low <= 0.05 + 0.055


def test_a_better_model_is_called_better():
    _, _, better = lift_errors("three equally good", "40 independent documents", 40, better=1.0)
    assert better >= 0.9


def rates(repeats=1_000):
    """Coverage of every score and of lifts."""
    rows = []
    for case in (*SETS, *LARGE_SETS):
        case_repeats = max(50, repeats // 3) if case in LARGE_SETS else repeats
        for name, (covered, ignoring) in coverage(case, case_repeats).items():
            what = name
            if (SETS | LARGE_SETS)[case][2]:
                what += f" (documents alone: {ignoring:.3f})"
            rows.append({"what": what, "truth": case, "coverage": covered, "repeats": case_repeats})
    for baselines in BASELINES:
        for case in (
            "10 independent documents",
            "40 independent documents",
            "20 documents of 8 sources",
        ):
            what, null = "lift of F1 over the best of three baselines", f"{baselines}; {case}"
            too_high, too_low, better = lift_errors(baselines, case, repeats)
            _, _, power = lift_errors(baselines, case, max(50, repeats // 5), better=1.0)
            rows += [
                {
                    "what": what,
                    "null": f"as good as the best; {null}",
                    "false_positive_rate": better,
                    "truth": "hits' log-odds 1 above the best (F1 +.13)",
                    "power": power,
                    "repeats": repeats,
                },
                {
                    "what": what,
                    "truth": null,
                    "coverage": 1 - too_high - too_low,
                    "repeats": repeats,
                },
            ]
    return rows

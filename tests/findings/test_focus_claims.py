"""Claims are supported, refuted or undecided by tests over seeds."""

from dataclasses import replace

import numpy as np
import pytest

from neural.findings.focus_claims import FocusClaim, evaluate_claims
from neural.findings.focus_results import (
    FocusResult,
    estimate_time_to_reach,
    group_results,
    read_result,
)


def create_result(paradigm, seed, m=5, **scores):
    return FocusResult(
        run=f"{paradigm}-{m}-{seed}",
        paradigm=paradigm,
        segments=m,
        seed=seed,
        classes=("a", "b"),
        scores=scores,
        heat_map=np.eye(3),
        examples={"x": np.zeros((1, m, 4))},
    )


def decide(claim, **by_paradigm):
    groups = group_results(
        create_result(name, seed, saif=value, classifier_calls=value)
        for name, values in by_paradigm.items()
        for seed, value in enumerate(values)
    )
    (verdict,) = evaluate_claims(groups, [claim])
    return verdict


MORE = FocusClaim("first has more", "first", ("second",), "saif")
NOISE = (-0.004, 0.003, 0.001, -0.002, 0.002)


def scores_around(mean, scale=1.0, seeds=5):
    """Scores of seeds that differ a little."""
    return [mean + scale * NOISE[seed % 5] * (1 + seed // 5) for seed in range(seeds)]


@pytest.mark.parametrize(
    ("first", "second", "supported"),
    [
        ([0.9, 0.91, 0.92, 0.9, 0.91], [0.8, 0.82, 0.81, 0.8, 0.8], "yes"),
        ([0.8, 0.82, 0.81, 0.8, 0.8], [0.9, 0.91, 0.92, 0.9, 0.91], "no"),
        ([0.9, 0.7, 0.9, 0.7, 0.8], [0.8, 0.8, 0.8, 0.8, 0.8], "undecided"),
        ([0.9, 0.9], [0.1, 0.1], "undecided"),
    ],
)
def test_the_interval_decides(first, second, supported):
    assert decide(MORE, first=first, second=second).supported == supported


def test_a_paradigm_with_failed_seeds_decides_nothing():
    """Seeds that did not fail are no sample of all seeds."""
    groups = group_results(
        replace(create_result(name, seed, saif=value), failed_seeds=2 * (name == "first"))
        for name, values in {"first": scores_around(0.9), "second": scores_around(0.5)}.items()
        for seed, value in enumerate(values)
    )
    (verdict,) = evaluate_claims(groups, [MORE])
    assert (verdict.supported, verdict.evidence) == ("undecided", "first failed with 2 seeds")


def test_a_margin_forgives_a_small_difference():
    near = FocusClaim("near", "first", ("second",), "saif", margin=0.05)
    assert decide(near, first=scores_around(0.80), second=[0.82] * 5).supported == "yes"
    assert decide(MORE, first=scores_around(0.80), second=[0.82] * 5).supported == "no"


def test_equal_measurements_in_five_seeds_decide_nothing():
    verdict = decide(MORE, first=[0.9] * 5, second=[0.8] * 5)
    assert verdict.supported == "undecided"
    assert "0.1 in each of 5 seeds" in verdict.evidence
    assert "ranks of 5 seeds cannot decide: 6 could" in verdict.evidence
    assert decide(MORE, first=[0.9] * 6, second=[0.8] * 6).supported == "yes"


@pytest.mark.parametrize(
    ("saif", "step", "kept", "cheap"), [(0.87, 2.6, "yes", "yes"), (0.83, 3.4, "no", "no")]
)
def test_the_cost_of_many_segments_is_tested_if_runs_have_many(saif, step, kept, cheap):
    runs = [
        create_result(
            name,
            seed,
            m=m,
            saif=(saif if m == 50 else 0.9) + NOISE[seed] * (m == 50),
            step_ms=1.0 if name == "soft" else step * (1 + NOISE[seed]),
        )
        for seed in range(5)
        for name in ("soft", "auto")
        for m in (5, 50)
    ]
    assert [verdict.supported for verdict in evaluate_claims(group_results(runs), [])] == [
        kept,
        cheap,
    ]
    assert evaluate_claims(group_results(run for run in runs if run.segments == 5), []) == []


def test_a_negative_sign_claims_less():
    less = FocusClaim("less", "first", ("second",), "saif", sign=-1)
    assert decide(less, first=scores_around(0.1), second=[0.2] * 5).supported == "yes"
    assert decide(less, first=scores_around(0.2), second=[0.1] * 5).supported == "no"


def test_against_several_paradigms_the_strongest_counts():
    best = FocusClaim("best", "first", ("second", "third"), "saif")
    verdict = decide(best, first=scores_around(0.5), second=[0.4] * 5, third=[0.9] * 5)
    assert verdict.supported == "no"
    assert verdict.number.value == pytest.approx(-0.4)


def test_against_several_paradigms_every_interval_must_pass():
    """The comparator with the lowest mean is clearly beaten, another one is not."""
    best = FocusClaim("best", "first", ("second", "third"), "saif")
    scores = {
        "first": [0.9] * 5,
        "second": scores_around(0.89, 0.1),
        "third": [0.82, 0.93, 0.83, 0.92, 0.83],
    }
    assert np.mean(scores["third"]) < np.mean(scores["second"])
    verdict = decide(best, **scores)
    assert verdict.supported == "undecided"
    assert verdict.number.low < 0 < verdict.number.high
    assert verdict.evidence.count("5 seeds") == 2, "both comparisons are shown"


def test_many_claims_share_one_error_rate():
    """p is .02: enough for one claim, not for one of ten."""
    first, second = [0.90, 0.91, 0.93, 0.92, 0.90], [0.88, 0.90, 0.90, 0.895, 0.89]
    (single,) = evaluate_claims(create_groups(first, second), [MORE])
    assert single.supported == "yes"
    assert 0.005 < single.p <= 0.05
    among_ten = evaluate_claims(create_groups(first, second), [MORE] * 10)
    assert {verdict.supported for verdict in among_ten} == {"undecided"}
    assert among_ten[0].p == pytest.approx(10 * single.p)


def create_groups(first, second, score="saif", **extra):
    return group_results(
        create_result(name, seed, **{score: value}, **extra)
        for name, values in (("first", first), ("second", second))
        for seed, value in enumerate(values)
    )


def test_half_of_the_calls_is_half():
    half = FocusClaim("half", "first", ("second",), "classifier_calls_half", sign=-1)
    assert decide(half, first=scores_around(10.0 - 0.5), second=[20.0] * 5).supported == "yes"
    assert decide(half, first=scores_around(10.0 + 0.5), second=[20.0] * 5).supported == "no"


def test_half_of_the_calls_is_half_of_the_same_seed():
    half = FocusClaim("half", "first", ("second",), "classifier_calls_half", sign=-1)
    calls = [10.0, 30.0, 20.0, 14.0, 25.0]
    verdict = decide(
        half,
        first=[call / 2 - 0.1 + noise for call, noise in zip(calls, NOISE, strict=True)],
        second=calls,
    )
    assert verdict.supported == "yes"
    assert (verdict.number.low, verdict.number.high) == (
        pytest.approx(-0.1, abs=0.01),
        pytest.approx(-0.1, abs=0.01),
    )


@pytest.mark.parametrize(
    ("calls", "strict", "supported"),
    [(1.0, True, "yes"), (20.0, True, "no"), (20.0, False, "yes"), (21.0, False, "no")],
)
def test_calls_determined_by_the_settings_are_exact(calls, strict, supported):
    fewer = FocusClaim("fewer", "first", ("second",), "classifier_calls", sign=-1, strict=strict)
    groups = create_groups([calls] * 2, [20.0] * 2, "classifier_calls", classifier_calls_range=0.0)
    (verdict,) = evaluate_claims(groups, [fewer])
    assert verdict.supported == supported
    assert verdict.is_exact
    assert np.isnan(verdict.p), "no test, so none to correct for"
    assert "exact: determined by the settings" in verdict.evidence


def test_calls_that_followed_the_focus_are_measured():
    fewer = FocusClaim("fewer", "first", ("second",), "classifier_calls", sign=-1, strict=True)
    (verdict,) = evaluate_claims(
        create_groups([18.0] * 5, [20.0] * 5, "classifier_calls", classifier_calls_range=19.0),
        [fewer],
    )
    assert verdict.supported == "undecided"
    assert not verdict.is_exact


SOONER = FocusClaim(
    "first is faster", "first", ("second",), "steps_to_target", sign=-1, strict=True
)
NEVER = float("nan")


def test_never_is_later_than_any_step():
    first = [50.0 + seed for seed in range(12)]
    (verdict,) = evaluate_claims(
        create_groups(first, [*[NEVER] * 7, *first[7:-5], *[300.0] * 5], "steps_to_target"),
        [SOONER],
    )
    assert verdict.supported == "yes"
    assert "median 55.5 steps (reached in 12 of 12 seeds)" in verdict.evidence
    assert "never (reached in 5 of 12 seeds)" in verdict.evidence


def test_never_is_not_dropped():
    """In the seeds where both reach it the second is faster; in most it never reaches it."""
    first, second = [100.0] * 5, [NEVER, NEVER, NEVER, 90.0, 80.0]
    (verdict,) = evaluate_claims(create_groups(first, second, "steps_to_target"), [SOONER])
    assert verdict.supported == "undecided"
    assert "never (reached in 2 of 5 seeds)" in verdict.evidence
    assert "ranks of 5 seeds cannot decide: 6 could" in verdict.evidence


def test_two_seeds_that_never_reach_it_are_a_tie():
    (verdict,) = evaluate_claims(
        create_groups([NEVER] * 6, [NEVER] * 6, "steps_to_target"), [SOONER]
    )
    assert verdict.supported == "undecided"
    assert np.isnan(verdict.p)


def test_times_have_an_interval_if_all_seeds_reach_it():
    (verdict,) = evaluate_claims(
        create_groups([40.0, 50, 40, 50, 60], [90.0, 90, 100, 90, 110], "steps_to_target"), [SOONER]
    )
    assert verdict.supported == "yes"
    assert verdict.number.high < 0
    assert "median 50 steps (reached in 5 of 5 seeds) against 90 steps" in verdict.evidence


def test_equal_median_times_are_known_to_one_validation_only():
    (verdict,) = evaluate_claims(
        create_groups([100.0] * 5, [100.0] * 5, "steps_to_target"), [SOONER]
    )
    assert "known to one validation: validate more often" in verdict.evidence
    never = create_groups([NEVER] * 6, [NEVER] * 6, "steps_to_target")
    assert "more often" not in evaluate_claims(never, [SOONER])[0].evidence


def test_the_median_time_counts_never_as_latest():
    def create_results(*times):
        return [
            create_result("first", seed, steps_to_target=time) for seed, time in enumerate(times)
        ]

    assert (
        str(estimate_time_to_reach(create_results(60.0, NEVER, 80.0), "steps_to_target"))
        == "80 (2 of 3)"
    )
    assert (
        str(estimate_time_to_reach(create_results(60.0, NEVER, NEVER), "steps_to_target"))
        == "never (1 of 3)"
    )
    assert (
        str(estimate_time_to_reach(create_results(60.0, 70.0, NEVER, NEVER), "steps_to_target"))
        == "never (2 of 4)"
    )
    assert str(estimate_time_to_reach(create_results(60.0, 70.0), "steps_to_target")) == "65"
    assert estimate_time_to_reach([], "steps_to_target").seeds == 0


def test_a_claim_without_runs_has_no_verdict():
    groups = group_results([create_result("first", 0, saif=1.0)])
    assert evaluate_claims(groups, [MORE]) == []


def test_a_result_is_read_as_it_was_written(tmp_path):
    result = create_result("lvml", 3, saif=0.5)
    result.write(tmp_path / "result.npz")
    loaded = read_result(tmp_path / "result.npz")
    assert (loaded.run, loaded.scores, loaded.classes) == (
        result.run,
        result.scores,
        result.classes,
    )
    np.testing.assert_array_equal(loaded.heat_map, result.heat_map)
    assert set(loaded.examples) == {"x"}

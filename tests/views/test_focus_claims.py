"""Claims are supported, refuted or left open by the interval over seeds."""

import numpy as np
import pytest

from neural.views.focus_claims import Claim, judged
from neural.views.focus_results import Result, grouped, read_result, time_to


def result(paradigm, seed, m=5, **scores):
    return Result(
        run=f"{paradigm}-{m}-{seed}", paradigm=paradigm, segments=m, seed=seed, classes=("a", "b"),
        scores=scores, heat=np.eye(3), shown={"x": np.zeros((1, m, 4))},
    )  # fmt: skip


def verdict(claim, **by_paradigm):
    groups = grouped(result(name, seed, saif=value, calls=value) for name, values in by_paradigm.items()
                     for seed, value in enumerate(values))  # fmt: skip
    (found,) = judged(groups, [claim])
    return found


MORE = Claim("one has more", "one", ("two",), "saif")
NOISE = (-0.004, 0.003, 0.001, -0.002, 0.002)


def around(mean, scale=1.0, seeds=5):
    """Scores of seeds that differ a little."""
    return [mean + scale * NOISE[seed % 5] * (1 + seed // 5) for seed in range(seeds)]


@pytest.mark.parametrize(
    ("one", "two", "supported"),
    [([0.9, 0.91, 0.92, 0.9, 0.91], [0.8, 0.82, 0.81, 0.8, 0.8], "yes"),
     ([0.8, 0.82, 0.81, 0.8, 0.8], [0.9, 0.91, 0.92, 0.9, 0.91], "no"),
     ([0.9, 0.7, 0.9, 0.7, 0.8], [0.8, 0.8, 0.8, 0.8, 0.8], "undecided"),
     ([0.9, 0.9], [0.1, 0.1], "undecided")],
)  # fmt: skip
def test_the_interval_decides(one, two, supported):
    assert verdict(MORE, one=one, two=two).supported == supported


def test_a_margin_forgives_a_small_difference():
    near = Claim("near", "one", ("two",), "saif", margin=0.05)
    assert verdict(near, one=around(0.80), two=[0.82] * 5).supported == "yes"
    assert verdict(MORE, one=around(0.80), two=[0.82] * 5).supported == "no"


def test_equal_measurements_in_five_seeds_decide_nothing():
    decided = verdict(MORE, one=[0.9] * 5, two=[0.8] * 5)
    assert decided.supported == "undecided"
    assert "0.1 in each of 5 seeds" in decided.evidence
    assert "ranks of 5 seeds cannot decide: 6 could" in decided.evidence
    assert verdict(MORE, one=[0.9] * 6, two=[0.8] * 6).supported == "yes"


@pytest.mark.parametrize(("saif", "step", "kept", "cheap"), [(0.87, 2.6, "yes", "yes"), (0.83, 3.4, "no", "no")])
def test_what_many_segments_cost_is_judged_where_there_are_many(saif, step, kept, cheap):
    runs = [result(name, seed, m=m, saif=(saif if m == 50 else 0.9) + NOISE[seed] * (m == 50),
                   step_ms=1.0 if name == "soft" else step * (1 + NOISE[seed]))
            for seed in range(5) for name in ("soft", "auto") for m in (5, 50)]  # fmt: skip
    assert [one.supported for one in judged(grouped(runs), [])] == [kept, cheap]
    assert judged(grouped(one for one in runs if one.segments == 5), []) == []


def test_less_is_the_other_way_round():
    less = Claim("less", "one", ("two",), "saif", sign=-1)
    assert verdict(less, one=around(0.1), two=[0.2] * 5).supported == "yes"
    assert verdict(less, one=around(0.2), two=[0.1] * 5).supported == "no"


def test_against_several_the_strongest_counts():
    best = Claim("best", "one", ("two", "three"), "saif")
    found = verdict(best, one=around(0.5), two=[0.4] * 5, three=[0.9] * 5)
    assert found.supported == "no"
    assert found.number.value == pytest.approx(-0.4)


def test_against_several_every_interval_must_pass():
    """The comparator with the lowest mean is beaten surely, another one perhaps not."""
    best = Claim("best", "one", ("two", "three"), "saif")
    scores = {"one": [0.9] * 5, "two": around(0.89, 0.1), "three": [0.82, 0.93, 0.83, 0.92, 0.83]}
    assert np.mean(scores["three"]) < np.mean(scores["two"])
    decided = verdict(best, **scores)
    assert decided.supported == "undecided"
    assert decided.number.low < 0 < decided.number.high
    assert decided.evidence.count("5 seeds") == 2, "both comparisons are shown"


def test_many_claims_are_held_to_one_error_rate():
    """p is .02: enough for one claim, not for one of ten."""
    one, two = [0.90, 0.91, 0.93, 0.92, 0.90], [0.88, 0.90, 0.90, 0.895, 0.89]
    (alone,) = judged(pairs_of(one, two), [MORE])
    assert alone.supported == "yes"
    assert 0.005 < alone.p <= 0.05
    among_ten = judged(pairs_of(one, two), [MORE] * 10)
    assert {decided.supported for decided in among_ten} == {"undecided"}
    assert among_ten[0].p == pytest.approx(10 * alone.p)


def pairs_of(one, two, score="saif", **extra):
    return grouped(
        result(name, seed, **{score: value}, **extra)
        for name, values in (("one", one), ("two", two))
        for seed, value in enumerate(values)
    )


def test_half_of_the_calls_is_half():
    half = Claim("half", "one", ("two",), "calls_half", sign=-1)
    assert verdict(half, one=around(10.0 - 0.5), two=[20.0] * 5).supported == "yes"
    assert verdict(half, one=around(10.0 + 0.5), two=[20.0] * 5).supported == "no"


def test_half_of_the_calls_is_half_of_the_same_seed():
    half = Claim("half", "one", ("two",), "calls_half", sign=-1)
    calls = [10.0, 30.0, 20.0, 14.0, 25.0]
    decided = verdict(half, one=[call / 2 - 0.1 + noise for call, noise in zip(calls, NOISE, strict=True)], two=calls)
    assert decided.supported == "yes"
    assert (decided.number.low, decided.number.high) == (pytest.approx(-0.1, abs=0.01), pytest.approx(-0.1, abs=0.01))


@pytest.mark.parametrize(
    ("mine", "strict", "supported"), [(1.0, True, "yes"), (20.0, True, "no"), (20.0, False, "yes"), (21.0, False, "no")]
)
def test_calls_that_the_settings_decide_are_exact(mine, strict, supported):
    fewer = Claim("fewer", "one", ("two",), "calls", sign=-1, strict=strict)
    groups = pairs_of([mine] * 2, [20.0] * 2, "calls", calls_range=0.0)
    (decided,) = judged(groups, [fewer])
    assert decided.supported == supported
    assert decided.is_exact
    assert np.isnan(decided.p), "no test, so none to correct for"
    assert "exact: set by the settings" in decided.evidence


def test_calls_that_followed_the_focus_are_measured():
    fewer = Claim("fewer", "one", ("two",), "calls", sign=-1, strict=True)
    (decided,) = judged(pairs_of([18.0] * 5, [20.0] * 5, "calls", calls_range=19.0), [fewer])
    assert decided.supported == "undecided"
    assert not decided.is_exact


SOON = Claim("one is quicker", "one", ("two",), "steps_to", sign=-1, strict=True)
NEVER = float("nan")


def test_never_is_later_than_any_step():
    one = [50.0 + seed for seed in range(12)]
    (decided,) = judged(pairs_of(one, [*[NEVER] * 7, *one[7:-5], *[300.0] * 5], "steps_to"), [SOON])
    assert decided.supported == "yes"
    assert "median 55.5 steps (reached in 12 of 12 seeds)" in decided.evidence
    assert "never (reached in 5 of 12 seeds)" in decided.evidence


def test_never_is_not_dropped():
    """In the seeds where both get there the second is quicker; in most it never does."""
    one, two = [100.0] * 5, [NEVER, NEVER, NEVER, 90.0, 80.0]
    (decided,) = judged(pairs_of(one, two, "steps_to"), [SOON])
    assert decided.supported == "undecided"
    assert "never (reached in 2 of 5 seeds)" in decided.evidence
    assert "ranks of 5 seeds cannot decide: 6 could" in decided.evidence


def test_two_that_never_get_there_are_a_tie():
    (decided,) = judged(pairs_of([NEVER] * 6, [NEVER] * 6, "steps_to"), [SOON])
    assert decided.supported == "undecided"
    assert np.isnan(decided.p)


def test_times_of_seeds_that_all_get_there_have_an_interval():
    (decided,) = judged(pairs_of([40.0, 50, 40, 50, 60], [90.0, 90, 100, 90, 110], "steps_to"), [SOON])
    assert decided.supported == "yes"
    assert decided.number.high < 0
    assert "median 50 steps (reached in 5 of 5 seeds) against 90 steps" in decided.evidence


def test_the_median_time_counts_never_as_latest():
    def runs(*times):
        return [result("one", seed, steps_to=time) for seed, time in enumerate(times)]

    assert str(time_to(runs(60.0, NEVER, 80.0), "steps_to")) == "80 (2 of 3)"
    assert str(time_to(runs(60.0, NEVER, NEVER), "steps_to")) == "never (1 of 3)"
    assert str(time_to(runs(60.0, 70.0, NEVER, NEVER), "steps_to")) == "never (2 of 4)"
    assert str(time_to(runs(60.0, 70.0), "steps_to")) == "65"
    assert time_to([], "steps_to").seeds == 0


def test_a_claim_without_runs_is_not_judged():
    groups = grouped([result("one", 0, saif=1.0)])
    assert judged(groups, [MORE]) == []


def test_a_result_is_read_as_it_was_written(tmp_path):
    one = result("lvml", 3, saif=0.5)
    one.write(tmp_path / "one.npz")
    again = read_result(tmp_path / "one.npz")
    assert (again.run, again.scores, again.classes) == (one.run, one.scores, one.classes)
    np.testing.assert_array_equal(again.heat, one.heat)
    assert set(again.shown) == {"x"}

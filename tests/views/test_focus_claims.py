"""Claims are supported, refuted or left open by the interval over seeds."""

import numpy as np
import pytest

from neural.views.focus_claims import Claim, judged
from neural.views.focus_results import Result, grouped, read_result


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
    assert verdict(near, one=[0.80] * 5, two=[0.82] * 5).supported == "yes"
    assert verdict(MORE, one=[0.80] * 5, two=[0.82] * 5).supported == "no"


def test_more_is_not_as_much():
    strict = Claim("more", "one", ("two",), "saif", strict=True)
    assert verdict(strict, one=[0.5] * 5, two=[0.5] * 5).supported == "undecided"
    assert verdict(MORE, one=[0.5] * 5, two=[0.5] * 5).supported == "yes"


@pytest.mark.parametrize(
    ("saif", "step", "kept", "cheap"), [(0.86, 2.9, "yes", "yes"), (0.84, 3.1, "no", "no")]
)  # fmt: skip
def test_what_many_segments_cost_is_judged_where_there_are_many(saif, step, kept, cheap):
    runs = [result(name, seed, m=m, saif=saif if m == 50 else 0.9, step_ms=1.0 if name == "soft" else step)
            for seed in range(5) for name in ("soft", "auto") for m in (5, 50)]  # fmt: skip
    assert [one.supported for one in judged(grouped(runs), [])] == [kept, cheap]
    assert judged(grouped(one for one in runs if one.segments == 5), []) == []


def test_less_is_the_other_way_round():
    less = Claim("less", "one", ("two",), "saif", sign=-1)
    assert verdict(less, one=[0.1] * 5, two=[0.2] * 5).supported == "yes"
    assert verdict(less, one=[0.2] * 5, two=[0.1] * 5).supported == "no"


def test_against_several_the_strongest_counts():
    best = Claim("best", "one", ("two", "three"), "saif")
    found = verdict(best, one=[0.5] * 5, two=[0.4] * 5, three=[0.9] * 5)
    assert found.supported == "no"
    assert found.number.value == pytest.approx(-0.4)


def test_half_of_the_calls_is_half():
    half = Claim("half", "one", ("two",), "calls_half", sign=-1)
    assert verdict(half, one=[10.0] * 5, two=[20.0] * 5).supported == "yes"
    assert verdict(half, one=[10.5] * 5, two=[20.0] * 5).supported == "no"


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

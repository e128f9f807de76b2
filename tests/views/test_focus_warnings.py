"""Warnings: what the accuracy does not tell, and nothing where all is well."""

import math

import pytest

from neural.views.focus_results import grouped
from neural.views.focus_warnings import warnings
from tests.views.test_focus_claims import result

WELL = {"accuracy": 0.97, "focus_confidence": 0.95, "focus_accuracy": 0.96, "cell_ft": 0.02, "switched": 0.2,
        "focus_accuracy_class_0": 0.95, "focus_accuracy_class_1": 0.97}  # fmt: skip


def codes(paradigm="lvml", **changes):
    return [one.code for one in warnings(grouped(result(paradigm, seed, **{**WELL, **changes}) for seed in range(2)))]


@pytest.mark.parametrize(
    ("paradigm", "changes", "code"),
    [("soft", {"focus_confidence": 0.5}, "FOC001"), ("hard", {"focus_accuracy": 0.4}, "FOC002"),
     ("lvml", {"focus_accuracy_class_1": 0.1, "cell_ft": 0.3}, "FOC003"), ("hybrid", {"switched": 0.9}, "FOC004"),
     ("hybrid", {"switched": math.nan}, "FOC004")],
)  # fmt: skip
def test_each_trouble_is_told_alone(paradigm, changes, code):
    assert codes(paradigm, **changes) == [code]


def test_seeds_that_never_switched_are_not_forgotten():
    """The two that did switch did so in time."""
    times = [math.nan, math.nan, math.nan, 0.2, 0.2]
    runs = [result("hybrid", seed, **{**WELL, "switched": time}) for seed, time in enumerate(times)]
    (warning,) = warnings(grouped(runs))
    assert warning.code == "FOC004"
    assert "never (over 5 seeds)" in warning.evidence


def test_nothing_is_told_where_all_is_well():
    assert codes() == codes("hybrid") == []


def test_the_class_that_is_not_found_is_named_with_a_way_out():
    (one,) = warnings(grouped([result("lvml", 0, **{**WELL, "focus_accuracy_class_1": 0.1, "cell_ft": 0.3})]))
    assert "class b is found in 10% only" in str(one)
    assert "`background: 0.5`" in str(one)


def test_nothing_is_said_about_a_focus_that_nobody_knows():
    assert warnings(grouped([result("lvml", 0, accuracy=0.9)])) == []

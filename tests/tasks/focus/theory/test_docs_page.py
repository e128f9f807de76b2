"""The numbers in docs/focus-theory.md equal those of the theory."""

import re
from pathlib import Path

import numpy as np
import pytest

from neural.tasks.focus.theory.annealed import SteepestFlow
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import (
    create_flow,
    switch_at_equal_incentive,
    switch_at_margin,
)

PAGE = (Path(__file__).parents[4] / "docs" / "focus-theory.md").read_text(encoding="utf-8")


def table_rows():
    sizes = ""
    row = r"^\| ([\d, ]*)\| ([\w →]+) \| " + r"([\d.,]+) \| " * 3 + r"([\d,]+) \|$"
    for first, name, *numbers in re.findall(row, PAGE, re.M):
        sizes = first.strip() or sizes
        yield sizes, name, tuple(float(number.replace(",", "")) for number in numbers)


def test_there_are_three_settings_with_six_schedules_each():
    assert len(list(table_rows())) == 18


@pytest.mark.parametrize(("sizes", "name", "numbers"), list(table_rows()))
def test_each_row_of_the_table_equals_the_theory(sizes, name, numbers):
    setting = LinearSetting(*(int(number) for number in sizes.split(", ")))
    flow = (
        SteepestFlow(setting)
        if name == "steepest"
        else create_flow(setting, *name.lower().split(" → "))
    )
    assert tuple(round(time, 1) for time in flow.times_to((0.5, 0.9, 0.95))) == numbers[:3]
    calls = (
        setting.segments * flow.time_to(0.95)
        if name == "steepest"
        else flow.classifier_calls_to(0.95)
    )
    assert round(calls) == numbers[3]


def test_times_of_bounded_orders_equal_those_of_the_docs():
    match = re.search(r"α = ½ at ([\d,]+) \(τ ≤ 1\), ([\d,]+) \(τ ≤ 4\), ([\d,]+) \(τ ≤ 16\)", PAGE)
    times = [
        SteepestFlow(LinearSetting(3, 1000), max_order=max_order).time_to(0.5)
        for max_order in (1, 4, 16)
    ]
    assert [f"{time:,.0f}" for time in times] == list(match.groups())


@pytest.mark.parametrize(
    ("sizes", "times"),
    [
        ((3, 10), [60.4, 99.0, 131.5]),
        ((20, 20), [575.2, 678.1, 760.0]),
        ((3, 1000), [4641.9, 4683.7, 4715.5]),
    ],
)
def test_published_times_are_those_of_a_switch_at_the_next_grid_point(sizes, times):
    assert "numpy.geomspace(0.001, 1e6, 4701)" in PAGE
    setting, grid = LinearSetting(*sizes), np.geomspace(0.001, 1e6, 4701)
    soft, hard = (create_law(name, setting.classes) for name in ("soft", "hard"))
    exact = switch_at_equal_incentive(setting, soft, hard)
    late_switch = grid[np.searchsorted(grid, exact.switches[0])]
    margin = float(exact.flows[0].time_integral.invert(np.array([late_switch]))[0])
    assert [
        round(time, 1)
        for time in switch_at_margin(setting, soft, hard, margin).times_to((0.5, 0.9, 0.95))
    ] == times

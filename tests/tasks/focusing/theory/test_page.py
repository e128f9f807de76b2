"""The numbers on the page are those that the theory gives."""

import re
from pathlib import Path

import numpy as np
import pytest

from neural.tasks.focusing.theory.annealed import Steepest
from neural.tasks.focusing.theory.course import course, hybrid, switched
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.setting import Setting

PAGE = (Path(__file__).parents[4] / "docs/focus-theory.md").read_text(encoding="utf-8")


def rows():
    sizes = ""
    row = r"^\| ([\d, ]*)\| ([\w →]+) \| " + r"([\d.,]+) \| " * 3 + r"([\d,]+) \|$"
    for first, name, *numbers in re.findall(row, PAGE, re.M):
        sizes = first.strip() or sizes
        yield sizes, name, tuple(float(one.replace(",", "")) for one in numbers)


def test_there_are_three_settings_with_six_schedules_each():
    assert len(list(rows())) == 18


@pytest.mark.parametrize(("sizes", "name", "numbers"), list(rows()))
def test_a_row_of_the_table(sizes, name, numbers):
    setting = Setting(*(int(one) for one in sizes.split(", ")))
    found = Steepest(setting) if name == "steepest" else course(setting, *name.lower().split(" → "))
    assert tuple(round(time, 1) for time in found.times_to((0.5, 0.9, 0.95))) == numbers[:3]
    calls = setting.segments * found.time_to(0.95) if name == "steepest" else found.calls_to(0.95)
    assert round(calls) == numbers[3]


def test_bounded_orders_as_the_page_says():
    said = re.search(r"α = ½ at ([\d,]+) \(τ ≤ 1\), ([\d,]+) \(τ ≤ 4\), ([\d,]+) \(τ ≤ 16\)", PAGE)
    times = [Steepest(Setting(3, 1000), most=most).time_to(0.5) for most in (1, 4, 16)]
    assert [f"{time:,.0f}" for time in times] == list(said.groups())


@pytest.mark.parametrize(
    ("sizes", "times"),
    [((3, 10), [60.4, 99.0, 131.5]), ((20, 20), [575.2, 678.1, 760.0]), ((3, 1000), [4641.9, 4683.7, 4715.5])],
)
def test_other_figures_are_those_of_a_switch_at_the_next_point_of_a_grid(sizes, times):
    assert "numpy.geomspace(0.001, 1e6, 4701)" in PAGE
    setting, grid = Setting(*sizes), np.geomspace(0.001, 1e6, 4701)
    soft, hard = (law(name, setting.classes) for name in ("soft", "hard"))
    exact = hybrid(setting, soft, hard)
    late = grid[np.searchsorted(grid, exact.switches[0])]
    margin = float(exact.motions[0].times.place(np.array([late]))[0])
    assert [round(time, 1) for time in switched(setting, soft, hard, margin).times_to((0.5, 0.9, 0.95))] == times

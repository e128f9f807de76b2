"""The numbers on the page are those that the theory gives."""

import re
from pathlib import Path

import pytest

from neural.tasks.focusing.theory.annealed import Steepest
from neural.tasks.focusing.theory.course import course
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

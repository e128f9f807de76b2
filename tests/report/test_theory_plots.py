"""Plots of the theory of focus models."""

import pytest

from neural.report.theory_plots import THEORY_PLOTS_BY_NAME, draw_theory_plots
from neural.tasks.focus.theory.overview import compute_overview
from neural.tasks.focus.theory.setting import LinearSetting


@pytest.fixture(scope="module")
def overview():
    return compute_overview(LinearSetting(3, 5), alphas=(0.2, 0.5, 0.8), until=40.0)


def test_the_same_setting_gives_the_same_bytes(overview, tmp_path):
    first, second = (
        draw_theory_plots(overview, tmp_path / name, formats=("svg",)) for name in ("a", "b")
    )
    assert [path.name for path in first] == [f"{name}.svg" for name in THEORY_PLOTS_BY_NAME]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    late = first[-1].read_text()
    assert "C/(log C · t)" in late
    assert "mathdefault" not in late, "numbers are plain text"


def test_every_schedule_has_a_line_its_switches_and_measured_points(overview):
    panel = THEORY_PLOTS_BY_NAME["theory_motion"](overview).axes[0]
    lines = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
    assert set(lines) == {schedule.name for schedule in overview.schedules}
    diamonds = [line for line in panel.lines if line.get_marker() == "D"]
    assert len(diamonds) == sum(len(schedule.switches) for schedule in overview.schedules)
    circles = [line for line in panel.lines if line.get_marker() in ("o", "s")]
    assert len(circles) == len(overview.schedules)
    assert all(len(circle.get_xdata()) > 10 for circle in circles)

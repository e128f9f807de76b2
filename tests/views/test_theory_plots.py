"""The theory, drawn."""

import pytest

from neural.tasks.focusing.theory.overview import overview
from neural.tasks.focusing.theory.setting import Setting
from neural.views.theory_plots import PICTURES, theory_plots


@pytest.fixture(scope="module")
def found():
    return overview(Setting(3, 5), alphas=(0.2, 0.5, 0.8), until=40.0)


def test_the_same_setting_gives_the_same_bytes(found, tmp_path):
    first, second = (theory_plots(found, tmp_path / name, formats=("svg",)) for name in ("a", "b"))
    assert [path.name for path in first] == [f"{name}.svg" for name in PICTURES]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    late = first[-1].read_text()
    assert "C/(log C · t)" in late
    assert "mathdefault" not in late, "numbers are written out"


def test_every_schedule_is_a_line_with_its_switch_and_the_measured_points_lie_on_it(found):
    panel = PICTURES["theory_motion"](found).axes[0]
    lines = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
    assert set(lines) == {one.name for one in found.schedules}
    diamonds = [line for line in panel.lines if line.get_marker() == "D"]
    assert len(diamonds) == sum(len(one.switches) for one in found.schedules)
    circles = [line for line in panel.lines if line.get_marker() in ("o", "s")]
    assert len(circles) == len(found.schedules)
    assert all(len(one.get_xdata()) > 10 for one in circles)

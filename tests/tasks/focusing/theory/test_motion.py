"""Focus and classifier together: against step-by-step integration, and by what never changes."""

import numpy as np
import pytest

from neural.tasks.focusing.theory.course import course, hybrid, switched
from neural.tasks.focusing.theory.flow import Flow, by
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.motion import Motion
from neural.tasks.focusing.theory.setting import Setting

NAMES = ("soft", "hard", "lvml", "renyi:3")
LEVELS = (0.5, 0.9, 0.95)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(3, 7, 1.0), (5, 11, 3.0), (2, 2, 0.2)])
def test_the_motion_is_the_one_that_integration_finds(name, sizes):
    setting, one = Setting(*sizes), law(name, sizes[0])
    times = np.array([0.0, 1.7, 23.0, 60.0, 310.0])
    flow = Flow(setting, by(one), times[-1], exactly=1e-12)
    margin, score = flow.state(times)
    found = Motion(setting, one).trajectory(times)
    assert found.margin == pytest.approx(margin, abs=1e-8)
    assert found.score == pytest.approx(score, abs=1e-8)
    assert setting.climb(score) - setting.rate * one.push(margin) == pytest.approx(0, abs=1e-8), "the invariant"


@pytest.mark.parametrize("name", NAMES)
def test_the_invariant_holds_along_the_motion_from_any_start(name):
    setting, one = Setting(4, 9, 1.5), law(name, 4)
    motion = Motion(setting, one, margin=0.8, score=1.3)
    path = motion.trajectory(np.geomspace(0.01, 1e5, 50))
    kept = setting.climb(path.score) - setting.rate * one.push(path.margin)
    assert kept == pytest.approx(motion.level, abs=1e-8, rel=1e-10)
    assert (np.diff(path.focus) > 0).all()
    assert (np.diff(path.loss) < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_time_and_place_lead_to_each_other(name):
    motion = Motion(Setting(3, 10), law(name, 3))
    for level in (0.2, 0.5, 0.9):
        assert motion.trajectory(np.array([motion.time_to(level)])).focus[0] == pytest.approx(level, abs=1e-10)
    assert motion.time_to(0.1) == 0
    assert motion.time_to(0.05) == 0


def test_soft_never_gets_some_places():
    setting = Setting(3, 10)
    assert course(setting, "soft").time_to(1 - 1e-6) == np.inf
    assert np.isfinite(course(setting, "hard").time_to(1 - 1e-6))


TABLE = {
    (3, 10): {
        "soft": (60.5, 353.2, 3207.4), "hard": (73.1, 112.9, 145.6), "lvml": (60.9, 113.5, 163.8),
        "soft → hard": (60.4, 99.0, 131.5),
    },
    (20, 20): {
        "soft": (575.2, 766.1, 1613.5), "hard": (600.5, 706.6, 788.8), "lvml": (418.5, 639.6, 867.5),
        "soft → hard": (575.2, 678.2, 760.1),
    },
    (3, 1000): {
        "soft": (4641.9, 5284.2, 11134.8), "hard": (6077.8, 6116.1, 6148.5), "lvml": (4436.0, 4487.7, 4537.7),
        "soft → hard": (4640.9, 4677.8, 4709.7),
    },
}  # fmt: skip
"""Times to α = 0.5, 0.9, 0.95."""


@pytest.mark.parametrize("sizes", TABLE)
@pytest.mark.parametrize("name", ["soft", "hard", "lvml", "soft → hard"])
def test_the_times_of_the_table(sizes, name):
    found = course(Setting(*sizes), *name.split(" → "))
    assert found.name == name
    assert tuple(round(time, 1) for time in found.times_to(LEVELS)) == TABLE[sizes][name]


@pytest.mark.parametrize(
    ("sizes", "first"), [((3, 10), "soft"), ((20, 20), "soft"), ((3, 1000), "soft"), ((20, 20), "lvml")]
)
def test_a_hybrid_is_what_integration_with_a_switch_finds(sizes, first):
    setting = Setting(*sizes)
    one, two = law(first, sizes[0]), law("hard", sizes[0])
    found = hybrid(setting, one, two)
    (switch,) = found.switches

    def pull(time, focus, margin):
        return by(one if time < switch else two)(time, focus, margin)

    before = Flow(setting, by(one), switch)
    margin, score = (float(value) for value in before.state(switch))
    focus = setting.focus(score)
    assert one.incentive(focus, margin) == pytest.approx(float(two.incentive(focus, margin)), rel=1e-7)
    earlier, sooner = (float(value) for value in before.state(0.9 * switch))
    assert one.incentive(setting.focus(sooner), earlier) > two.incentive(setting.focus(sooner), earlier)
    after = Motion(setting, two, margin=margin, score=score)
    assert switch + after.time_to(0.95) == pytest.approx(found.time_to(0.95), rel=1e-8)
    flow = Flow(setting, pull, 1.5 * found.time_to(0.95), exactly=1e-9)
    assert flow.time_to(0.95) == pytest.approx(found.time_to(0.95), rel=1e-6)


def test_a_course_of_two_is_whole_at_the_switch():
    setting = Setting(3, 10)
    found = switched(setting, law("soft", 3), law("hard", 3), 2.5)
    (switch,) = found.switches
    path = found.trajectory(np.array([0.5 * switch, switch - 1e-7, switch + 1e-7, 2 * switch]))
    assert path.focus[1] == pytest.approx(path.focus[2], abs=1e-6)
    assert path.loss[2] > path.loss[1] + 0.1, "another loss from here on"
    assert found.calls_to(0.95) == pytest.approx(switch + 10 * (found.time_to(0.95) - switch))

"""The model beside the prediction, and how steeply both end."""

import pytest

from neural.tasks.focusing.theory.course import course
from neural.tasks.focusing.theory.linear import descend
from neural.tasks.focusing.theory.overview import _apart, _finish
from neural.tasks.focusing.theory.setting import Setting

SETTING, FAR = Setting(3, 4), 1e4


@pytest.fixture(scope="module", params=["soft", "hard"])
def both(request):
    measured = descend(SETTING, (request.param,), FAR, step=0.02, stride=0.002)
    return request.param, measured


def test_small_steps_keep_to_the_prediction(both):
    name, measured = both
    assert _apart(course(SETTING, name), measured) < 1e-3


def test_what_was_measured_ends_as_steeply_as_the_exact_path_and_nearly_as_the_formula_says(both):
    name, measured = both
    found = _finish(SETTING, name, FAR, measured)
    assert found.slope_measured == pytest.approx(found.slope_exact, abs=3e-3)
    assert found.slope == pytest.approx(found.slope_exact, abs=0.03)
    assert (found.slope < -0.9) == (name == "hard"), "soft is in another class"

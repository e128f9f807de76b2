"""What `auto` becomes, and why it says so."""

import pytest

from neural.tasks.focusing.choice import chosen
from neural.tasks.focusing.estimators.nucleus import Nucleus
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.focusing.paradigms.lvml import Lvml
from neural.tasks.focusing.paradigms.renyi import Renyi


def asked(paradigm, estimator=None, samples=None, segments=20, steps=600):
    return chosen(paradigm, estimator, samples, 0.0, classes=3, segments=segments, steps=steps)


def test_auto_reads_few_segments_and_says_why():
    found = asked("auto")
    assert isinstance(found.paradigm, Hybrid)
    assert isinstance(found.estimator, Nucleus)
    assert "m = 20" in found.reason and "focus" in found.reason


@pytest.mark.parametrize(("segments", "steps"), [(5, 600), (20, 600), (20, 100)])
def test_auto_switches_later_where_there_is_more_to_search(segments, steps):
    share = asked("auto", segments=segments, steps=steps).paradigm.value / steps
    assert (0.2 if segments == 5 else 0.5) < share < (0.4 if segments == 5 else 0.7)


def test_auto_never_reads_more_than_a_few_of_thousands():
    assert asked("auto", segments=10_000).samples == 32


def test_what_is_said_by_hand_stands():
    found = asked("auto", "gumbel", 7)
    assert (repr(found.estimator), found.samples) == ("gumbel()", 7)
    assert asked("lvml").paradigm == Lvml()
    assert asked("renyi(tau=0.25)").paradigm == Renyi(tau=0.25)
    assert asked("lvml").samples == 20
    assert asked("lvml").reason == ""

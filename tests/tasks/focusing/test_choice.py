"""What `auto` becomes, and why it says so."""

from neural.tasks.focusing.choice import chosen
from neural.tasks.focusing.estimators.nucleus import Nucleus
from neural.tasks.focusing.paradigm import Moment
from neural.tasks.focusing.paradigms.annealed import Annealed
from neural.tasks.focusing.paradigms.lvml import Lvml
from neural.tasks.focusing.paradigms.renyi import Renyi


def asked(paradigm, estimator=None, samples=None, segments=20, steps=600):
    return chosen(paradigm, estimator, samples, 0.0, classes=3, segments=segments, steps=steps)


def test_auto_reads_few_segments_and_says_why():
    found = asked("auto")
    assert isinstance(found.paradigm, Annealed)
    assert isinstance(found.estimator, Nucleus)
    assert "m = 20" in found.reason and "focus" in found.reason


def test_auto_glides_from_lvml_to_hard_for_longer_where_there_is_more_to_search():
    few, many = (asked("auto", segments=segments).paradigm for segments in (5, 20))
    assert few.at(Moment(0.0)) == many.at(Moment(0.0)) == Renyi(tau=1.0)
    assert few.at(Moment(1.0)) == many.at(Moment(1.0)) == Renyi(tau=0.0)
    assert 0.4 < few.until < 0.8 < many.until


def test_auto_never_reads_more_than_a_few_of_thousands():
    assert asked("auto", segments=10_000).samples == 32


def test_what_is_said_by_hand_stands():
    found = asked("auto", "gumbel", 7)
    assert (repr(found.estimator), found.samples) == ("gumbel()", 7)
    assert asked("lvml").paradigm == Lvml()
    assert asked("renyi(tau=0.25)").paradigm == Renyi(tau=0.25)
    assert asked("lvml").samples == 20
    assert asked("lvml").reason == ""

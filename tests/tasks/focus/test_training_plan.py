"""Training plans: the choice of `auto` and its reason; explicit settings."""

from neural.tasks.focus.estimators.nucleus import Nucleus
from neural.tasks.focus.paradigm import ParadigmProgress
from neural.tasks.focus.paradigms.annealed import Annealed
from neural.tasks.focus.paradigms.lvml import Lvml
from neural.tasks.focus.paradigms.renyi import Renyi
from neural.tasks.focus.training_plan import create_plan


def plan_for(paradigm, estimator=None, samples=None, segments=20, steps=600):
    return create_plan(paradigm, estimator, samples, 0.0, classes=3, segments=segments, steps=steps)


def test_auto_classifies_few_segments_and_gives_the_reason():
    plan = plan_for("auto")
    assert isinstance(plan.paradigm, Annealed)
    assert isinstance(plan.estimator, Nucleus)
    assert "m = 20" in plan.reason and "focus" in plan.reason


def test_auto_anneals_from_lvml_to_hard_longer_with_more_segments():
    few, many = (plan_for("auto", segments=segments).paradigm for segments in (5, 20))
    assert (
        few.at_progress(ParadigmProgress(0.0))
        == many.at_progress(ParadigmProgress(0.0))
        == Renyi(tau=1.0)
    )
    assert (
        few.at_progress(ParadigmProgress(1.0))
        == many.at_progress(ParadigmProgress(1.0))
        == Renyi(tau=0.0)
    )
    assert 0.4 < few.until < 0.8 < many.until


def test_auto_classifies_at_most_32_of_thousands_of_segments():
    assert plan_for("auto", segments=10_000).samples == 32


def test_explicit_settings_override_auto():
    plan = plan_for("auto", "gumbel", 7)
    assert (repr(plan.estimator), plan.samples) == ("gumbel()", 7)
    assert plan_for("lvml").paradigm == Lvml()
    assert plan_for("renyi(tau=0.25)").paradigm == Renyi(tau=0.25)
    assert plan_for("lvml").samples == 20
    assert plan_for("lvml").reason == ""

"""What may be wrong with a focus, told of one run: each shown by a run that has it, and not by one that has it not."""

import re

import numpy as np
import pytest

from neural.tracking.run import Run
from neural.views.analysis import registry
from neural.views.finding import Diagnosis
from neural.views.findings import findings

WELL = {"accuracy": 0.97, "focus_confidence": 0.95, "focus_accuracy": 0.96, "cell_ft": 0.02,
        "focus_accuracy_class_0": 0.95, "focus_accuracy_class_1": 0.97}  # fmt: skip
FOCUS = ("vague_focus", "wrong_focus", "background_shortcut", "switch_time")


def written(root, paradigm="lvml", *, switch=None, state="finished", course=(), **changes):
    """A run of 100 steps with five validations, the last of which is as said; accuracy may have a course of its own."""
    settings = {"task": "focus", "paradigm": paradigm, "training": {"seed": 0}}
    run = Run.create(root, "run", settings=settings, program=None, environment={})
    run.describe("steps", 100)
    run.describe("focus/classes", ["cat", "dog"])
    last = {f"valid/{name}": value for name, value in {**WELL, **changes}.items()}
    for number, step in enumerate((20, 40, 60, 80, 100)):
        accuracy = course[number] if course else last["valid/accuracy"]
        run.log(step, {**(last if step == 100 else dict.fromkeys(last, 0.1)), "valid/accuracy": accuracy})
    if switch is not None:
        run.event(switch, "switch", f"soft → hard after step {switch}: as set")
    run.beat(100)
    run.finish(state)
    return Run.open(run.path)


def codes(run):
    return [one.code for one in findings([run], ("warning",)) if one.code.startswith("FOC") and one.supported == "yes"]


@pytest.mark.parametrize(
    ("paradigm", "changes", "code", "says"),
    [("soft", {"focus_confidence": 0.5}, "FOC001", "right in 97%, but its largest weight is 0.50"),
     ("hard", {"focus_accuracy": 0.4}, "FOC002", r"sure of its focus \(0.95\), which is wrong in 60%"),
     ("lvml", {"focus_accuracy_class_1": 0.1, "cell_ft": 0.3}, "FOC003", "class dog is found in 10% only"),
     ("hybrid", {"switch": 90}, "FOC004", "after 90% of the steps"), ("hybrid", {}, "FOC004", "switched never"),
     ("hybrid", {"switch": 40, "course": (0.5, 0.9, 0.6, 0.9, 0.97)}, "FOC004", "fell by 0.30 then: too early")],
)  # fmt: skip
def test_each_trouble_is_told_of_the_run_that_has_it_and_alone(paradigm, changes, code, says, tmp_path):
    run = written(tmp_path, paradigm, **changes)
    assert codes(run) == [code]
    (one,) = [one for one in findings([run]) if one.code == code]
    assert one.kind == "warning"
    assert re.search(says, one.evidence)
    assert one.advice
    assert np.isfinite(one.number.value)


@pytest.mark.parametrize(
    ("paradigm", "changes"),
    [("lvml", {}), ("hybrid", {"switch": 40}), ("hybrid", {"switch": 40, "course": (0.5, 0.9, 0.88, 0.9, 0.97)}),
     ("auto", {"switch": 90}), ("soft", {"focus_confidence": 0.5, "accuracy": 0.6})],
)  # fmt: skip
def test_nothing_is_told_of_a_run_that_is_well(paradigm, changes, tmp_path):
    assert codes(written(tmp_path, paradigm, **changes)) == []


def test_a_run_that_is_not_over_may_still_switch(tmp_path):
    assert codes(written(tmp_path, "hybrid", state="stopped")) == []


def test_a_run_without_a_foreground_can_still_be_vague(tmp_path):
    run = Run.create(tmp_path, "run", settings={"task": "focus", "paradigm": "soft"}, program=None, environment={})
    run.log(10, {"valid/accuracy": 0.95, "valid/focus_confidence": 0.3})
    run.finish("finished")
    assert codes(Run.open(run.path)) == ["FOC001"]


@pytest.mark.parametrize("name", FOCUS)
def test_a_run_of_another_kind_has_no_focus_and_that_is_said(name, tmp_path):
    run = Run.create(tmp_path, "run", settings={"task": "supervised"}, program=None, environment={})
    run.finish("finished")
    entry = registry.get(name)
    assert issubclass(entry, Diagnosis)
    found = entry().analyze([Run.open(run.path)])
    assert found is not None
    assert (found.supported, "has no focus" in found.evidence) == ("undecided", True)

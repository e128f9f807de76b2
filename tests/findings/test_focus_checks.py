"""Focus warnings about single runs and about groups of seeds."""

import math
import re

import numpy as np
import pytest

from neural.findings.check import DiagnosticCheck
from neural.findings.checks import registry
from neural.findings.findings import analyze_runs
from neural.findings.focus_checks import find_focus_warnings
from neural.findings.focus_results import group_results
from neural.runs.run import Run
from tests.findings.test_focus_claims import create_result

HEALTHY = {
    "accuracy": 0.97,
    "focus_confidence": 0.95,
    "focus_accuracy": 0.96,
    "cell_ft": 0.02,
    "focus_accuracy_class_0": 0.95,
    "focus_accuracy_class_1": 0.97,
}
FOCUS_CHECKS = ("vague_focus", "wrong_focus", "background_shortcut", "switch_time")


def write_run(root, paradigm="lvml", *, switch=None, state="finished", accuracies=(), **changes):
    """Write a run of 100 steps with five validations; `changes` are scores of the last one."""
    settings = {"task": "focus", "paradigm": paradigm, "training": {"seed": 0}}
    run = Run.create(root, "run", settings=settings, program=None, environment={})
    run.set_metadata("steps", 100)
    run.set_metadata("focus/classes", ["cat", "dog"])
    last = {f"valid/{name}": value for name, value in {**HEALTHY, **changes}.items()}
    for index, step in enumerate((20, 40, 60, 80, 100)):
        accuracy = accuracies[index] if accuracies else last["valid/accuracy"]
        run.log(
            step,
            {**(last if step == 100 else dict.fromkeys(last, 0.1)), "valid/accuracy": accuracy},
        )
    if switch is not None:
        run.log_event(switch, "switch", f"soft → hard after step {switch}: as set")
    run.heartbeat(100)
    run.finish(state)
    return Run.open(run.path)


def list_codes(run):
    return [
        finding.code
        for finding in analyze_runs([run], ("warning",))
        if finding.code.startswith("FOC") and finding.supported == "yes"
    ]


@pytest.mark.parametrize(
    ("paradigm", "changes", "code", "message"),
    [
        (
            "soft",
            {"focus_confidence": 0.5},
            "FOC001",
            "97% of the examples are classified right, but the largest weight is only 0.50",
        ),
        (
            "hard",
            {"focus_accuracy": 0.4},
            "FOC002",
            "largest weight is 0.95 on average, but it is on a wrong segment in 60% of the examples",
        ),
        (
            "lvml",
            {"focus_accuracy_class_1": 0.1, "cell_ft": 0.3},
            "FOC003",
            "the focus is right in only 10% of the examples of class dog",
        ),
        ("hybrid", {"switch": 90}, "FOC004", "after 90% of the steps"),
        ("hybrid", {}, "FOC004", "never switched"),
        (
            "hybrid",
            {"switch": 40, "accuracies": (0.5, 0.9, 0.6, 0.9, 0.97)},
            "FOC004",
            "fell by 0.30 then: too early",
        ),
    ],
)
def test_each_symptom_of_a_run_gives_one_warning(paradigm, changes, code, message, tmp_path):
    run = write_run(tmp_path, paradigm, **changes)
    assert list_codes(run) == [code]
    (finding,) = [finding for finding in analyze_runs([run]) if finding.code == code]
    assert finding.kind == "warning"
    assert re.search(message, finding.evidence)
    assert finding.advice
    assert np.isfinite(finding.number.value)


@pytest.mark.parametrize(
    ("paradigm", "changes"),
    [
        ("lvml", {}),
        ("hybrid", {"switch": 40}),
        ("hybrid", {"switch": 40, "accuracies": (0.5, 0.9, 0.88, 0.9, 0.97)}),
        ("auto", {"switch": 90}),
        ("soft", {"focus_confidence": 0.5, "accuracy": 0.6}),
    ],
)
def test_a_healthy_run_has_no_warning(paradigm, changes, tmp_path):
    assert list_codes(write_run(tmp_path, paradigm, **changes)) == []


def test_an_unfinished_run_may_still_switch(tmp_path):
    assert list_codes(write_run(tmp_path, "hybrid", state="stopped")) == []


def test_a_run_without_a_foreground_can_still_be_vague(tmp_path):
    run = Run.create(
        tmp_path,
        "run",
        settings={"task": "focus", "paradigm": "soft"},
        program=None,
        environment={},
    )
    run.log(10, {"valid/accuracy": 0.95, "valid/focus_confidence": 0.3})
    run.finish("finished")
    assert list_codes(Run.open(run.path)) == ["FOC001"]


@pytest.mark.parametrize("name", FOCUS_CHECKS)
def test_a_run_of_another_task_is_undecided_with_a_reason(name, tmp_path):
    run = Run.create(tmp_path, "run", settings={"task": "supervised"}, program=None, environment={})
    run.finish("finished")
    check_type = registry.get(name)
    assert issubclass(check_type, DiagnosticCheck)
    finding = check_type().analyze([Run.open(run.path)])
    assert finding is not None
    assert (finding.supported, "has no focus" in finding.evidence) == ("undecided", True)


HEALTHY_GROUP = {**HEALTHY, "switch_share": 0.2}


def list_group_codes(paradigm="lvml", **changes):
    results = (create_result(paradigm, seed, **{**HEALTHY_GROUP, **changes}) for seed in range(2))
    return [warning.code for warning in find_focus_warnings(group_results(results))]


@pytest.mark.parametrize(
    ("paradigm", "changes", "code"),
    [
        ("soft", {"focus_confidence": 0.5}, "FOC001"),
        ("hard", {"focus_accuracy": 0.4}, "FOC002"),
        ("lvml", {"focus_accuracy_class_1": 0.1, "cell_ft": 0.3}, "FOC003"),
        ("hybrid", {"switch_share": 0.9}, "FOC004"),
        ("hybrid", {"switch_share": math.nan}, "FOC004"),
    ],
)
def test_each_symptom_of_a_group_gives_one_warning(paradigm, changes, code):
    assert list_group_codes(paradigm, **changes) == [code]


def test_seeds_that_never_switched_count():
    """The two that did switch did so in time."""
    times = [math.nan, math.nan, math.nan, 0.2, 0.2]
    runs = [
        create_result("hybrid", seed, **{**HEALTHY_GROUP, "switch_share": time})
        for seed, time in enumerate(times)
    ]
    (warning,) = find_focus_warnings(group_results(runs))
    assert warning.code == "FOC004"
    assert "never switched (over 5 seeds)" in warning.evidence


def test_a_healthy_group_has_no_warning():
    assert list_group_codes() == list_group_codes("hybrid") == []


def test_the_class_that_is_not_found_is_named_with_advice():
    (warning,) = find_focus_warnings(
        group_results(
            [
                create_result(
                    "lvml", 0, **{**HEALTHY_GROUP, "focus_accuracy_class_1": 0.1, "cell_ft": 0.3}
                )
            ]
        )
    )
    assert "the focus is right in only 10% of the examples of class b" in str(warning)
    assert "`background: 0.5`" in str(warning)


def test_without_focus_scores_there_is_no_warning():
    assert find_focus_warnings(group_results([create_result("lvml", 0, accuracy=0.9)])) == []

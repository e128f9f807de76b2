"""Advice: what to do about a run, most important first, and only where the data supports it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from neural.findings.advice import MAX_ADVICE, advise
from neural.findings.check import AnalysisCheck, DiagnosticCheck, Finding, Symptom
from neural.findings.checks import registry
from neural.findings.checks.undertrained import Undertrained, measure_late_fall
from neural.findings.findings import RUN_KINDS, analyze_runs, format_runs_report
from neural.stats.means import estimate_mean
from tests.findings.synthetic_runs import write_synthetic_run
from tests.validity.fake_run import FakeRun

STEPS = 50 * np.arange(1, 41)
TIME = np.arange(40) / 40


def create_loss(rate, *, rise=0.0, noise=0.005, seed=0):
    """A loss that falls by exp(−rate · time), time from 0 to 1, and rises after half of it."""
    jitter = np.random.default_rng(seed).normal(size=40)
    loss = 1 + 2 * np.exp(-rate * TIME) + rise * np.maximum(TIME - 0.5, 0)
    return loss * (1 + noise * jitter)


def create_finding(code, **fields):
    defaults = {
        "claim": f"claim of {code}",
        "supported": "yes",
        "number": estimate_mean([1.0]),
        "unit": "steps",
        "evidence": "at step 7",
        "advice": "do something",
        "kind": "warning",
        "importance": "low",
    }
    return Finding(code=code, **{**defaults, **fields})


def test_the_most_important_advice_comes_first():
    findings = [
        create_finding("A", importance="low"),
        create_finding("C", importance="medium"),
        create_finding("B", importance="medium"),
        create_finding("D", importance="high"),
    ]
    assert [advice.code for advice in advise(findings)] == ["D", "B", "C", "A"]


def test_there_are_at_most_five():
    advice = advise([create_finding(f"X{index}") for index in range(9)])
    assert [item.code for item in advice] == ["X0", "X1", "X2", "X3", "X4"]
    assert len(advice) == MAX_ADVICE


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "claim"},
        {"supported": "no"},
        {"supported": "undecided"},
        {"advice": ""},
        {"importance": "none"},
    ],
    ids=str,
)
def test_what_is_not_sure_or_has_no_remedy_is_not_advice(fields):
    finding = create_finding("A")
    assert advise([finding])
    assert advise([replace(finding, **fields)]) == []


def test_a_check_of_another_package_brings_its_own_advice(monkeypatch):
    class Restless(DiagnosticCheck):
        """Steps."""

        code: ClassVar[str] = "XYZ001"
        claim: ClassVar[str] = "the run is restless"
        unit: ClassVar[str] = "steps"
        importance = "high"
        advice: ClassVar[str] = "let it rest"

        def find_symptom(self, run):
            return Symptom(3.0, "it moved 3 times", f"let {run.name} rest for 3 steps")

    entries = {"restless": Restless}
    stand_in = SimpleNamespace(names=lambda: ["restless"], get=entries.get)
    monkeypatch.setattr("neural.findings.findings.registry", stand_in)
    (advice,) = analyze_runs([FakeRun(0)]).advice
    assert advice.to_dict() == {
        "code": "XYZ001",
        "problem": "the run is restless",
        "evidence": "it moved 3 times",
        "action": "let seed-0 rest for 3 steps",
    }


def test_advice_of_a_run_is_text_in_the_report(tmp_path):
    run = write_synthetic_run(tmp_path, 0, scalars={"valid/loss": create_loss(2)})
    report = format_runs_report([run])
    assert "what to do\n1. validation loss still falls at the end (TRN007)\n" in report
    html = analyze_runs([run]).advice._repr_html_()
    assert "what to do" in html
    assert "training.steps=4000" in html


def test_a_loss_that_still_falls_is_undertrained():
    fall = measure_late_fall(STEPS, create_loss(2))
    assert fall is not None
    exact = 2 * (np.exp(-2 * TIME[29]) - np.exp(-2 * TIME[39]))
    assert fall.size == pytest.approx(exact, abs=2.5 * fall.standard_error)
    assert (fall.first_step, fall.last_step) == (1500, 2000)


@pytest.mark.parametrize(
    ("losses", "reason"),
    [
        (create_loss(13), "it has levelled off"),
        (create_loss(13, rise=0.5), "it rises again"),
        (create_loss(2, noise=0.3), "noise"),
        (create_loss(-1), "it never fell"),
        (np.maximum(create_loss(2, noise=0), create_loss(2, noise=0)[33]), "levelled off late"),
        (create_loss(2)[:7], "too few validations to see the noise"),
    ],
    ids=str,
)
def test_a_loss_that_does_not_fall_beyond_noise_at_the_end_is_not(losses, reason):
    assert measure_late_fall(STEPS[: len(losses)], losses) is None, reason


def test_a_known_standard_error_replaces_the_noise_of_a_short_curve_and_adds_to_a_long_one():
    short = np.array([3.0, 2.5, 2.2, 2.0])
    assert measure_late_fall(STEPS[:4], short) is None
    assert measure_late_fall(STEPS[:4], short, 0.05) is not None
    assert measure_late_fall(STEPS[:4], short, 0.2) is None
    assert measure_late_fall(STEPS, create_loss(2), 0.5) is None


def find_undertrained(settings=None, state="finished", **metadata):
    run = FakeRun(
        0, scalars={"valid/loss": create_loss(2)}, settings=settings or {}, metadata=metadata
    )
    run.status.state = state
    return Undertrained().analyze([run])


def test_the_advice_doubles_the_training_in_its_own_unit():
    assert "`--set training.steps=4000`" in find_undertrained().advice
    assert "`--set training.steps=5000`" in find_undertrained(steps=2500).advice
    assert "`--set training.epochs=30`" in find_undertrained({"training": {"epochs": 15.0}}).advice


def test_a_stopped_training_is_resumed_and_a_running_one_left_alone():
    finding = find_undertrained(state="stopped", steps=3000)
    assert finding.advice == "resume it: `neural train --resume seed-0`"
    assert find_undertrained(state="running") is None


def test_the_best_checkpoint_is_named_if_the_model_got_worse():
    losses = create_loss(13, rise=0.5)
    (advice,) = [
        advice
        for advice in analyze_runs([FakeRun(0, scalars={"valid/loss": losses})], RUN_KINDS).advice
        if advice.code == "TRN008"
    ]
    best = int(losses.argmin())
    assert f"at step {STEPS[best]:,} and" in advice.evidence
    assert "at the end, step 2,000" in advice.evidence


def test_the_best_of_a_few_validations_is_named_though_noise_is_not_known():
    def analyze(*losses):
        run = FakeRun(0, scalars={"valid/loss": np.array(losses)})
        return [finding for finding in analyze_runs([run], RUN_KINDS) if finding.code == "TRN008"]

    # of a real training of 100 steps, validated every 20
    (finding,) = analyze(0.526, 0.510, 0.807, 0.762, 0.864)
    assert "is 0.51 at step 100 and 0.864 at the end" in finding.evidence
    assert "5 validations do not show whether that is noise" in finding.evidence
    assert finding.importance == "none"
    assert not analyze(0.599, 0.576, 0.573, 0.581, 0.590), "the best is in the second half"


def test_overfitting_is_one_advice_not_two():
    train = 3 * np.exp(-4 * TIME) * (1 + 0.02 * np.random.default_rng(1).normal(size=40))
    scalars = {"valid/loss": create_loss(13, rise=0.5), "train/loss": train}
    findings = analyze_runs([FakeRun(0, scalars=scalars)], RUN_KINDS)
    assert [advice.code for advice in findings.advice] == ["TRN003"]
    assert "best checkpoint" in findings.advice[0].action
    assert {"TRN003", "TRN008"} <= {finding.code for finding in findings}


def test_uniform_attention_is_compared_with_a_network_that_averages():
    run = FakeRun(0, arrays={"relative_entropy": np.full((5, 2, 2), 0.99)})
    (advice,) = analyze_runs([run], RUN_KINDS).advice
    assert advice.code == "ATT001"
    assert 'attention="uniform"' in advice.action


def test_every_check_of_the_folder_has_a_known_importance():
    for name in registry.names():
        check = registry.get(name)
        assert issubclass(check, AnalysisCheck)
        assert check.importance in ("high", "medium", "low", "none")
        if check.importance in ("high", "medium"):
            assert check.advice, f"{check.code} is important: it must say what to do"

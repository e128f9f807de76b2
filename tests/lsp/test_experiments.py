"""Experiments in YAML: their settings are checked, other files are left alone."""

import sys

import pytest

from neural.lsp.experiments import experiment_diagnostics


def test_mistakes_in_settings_have_their_place_and_a_way_out():
    text = "task: supervised\nnetwork: net.neural\ntraining:\n  step: 3\n  seed: -1\n"
    found = {one.code: (text[one.where.start : one.where.end], one.fix) for one in experiment_diagnostics(text)}
    assert set(found) == {"E0801", "E0803"}
    assert (found["E0801"][0], found["E0801"][1].text) == ("step", "steps")


def test_a_misspelt_task_is_one_of_ours():
    (one,) = experiment_diagnostics("task: superviced\nnetwork: net.neural\n")
    assert (one.code, one.fix.text) == ("E0808", "supervised")


def test_a_misspelt_choice_can_be_mended():
    text = 'task: supervised\nnetwork: net.neural\ntraining:\n  scheduler: "cosin"\n'
    (one,) = experiment_diagnostics(text)
    mended = text[: one.fix.where.start] + one.fix.text + text[one.fix.where.end :]
    assert mended.endswith("scheduler: cosine\n")
    assert experiment_diagnostics(mended) == ()


@pytest.mark.parametrize("text", ["services:\n  web: 1\n", "task: buy milk\n", "- task: supervised\n", ": : :", ""])
def test_other_yaml_is_left_alone(text):
    assert experiment_diagnostics(text) == ()


def test_torch_is_not_needed_to_look_at_settings():
    if "torch" not in sys.modules:
        experiment_diagnostics("task: supervised\nstep: 3\n")
        assert "torch" not in sys.modules

"""Experiment files are checked in the editor; other YAML files are ignored."""

import sys

import pytest

from neural.lsp.server import check_experiment


def test_errors_in_settings_have_a_span_and_a_fix():
    text = "task: supervised\nnetwork: net.neural\ntraining:\n  step: 3\n  seed: -1\n"
    by_code = {
        diagnostic.code: (text[diagnostic.span.start : diagnostic.span.end], diagnostic.fix)
        for diagnostic in check_experiment(text)
    }
    assert set(by_code) == {"E0801", "E0803"}
    assert (by_code["E0801"][0], by_code["E0801"][1].text) == ("step", "steps")


def test_a_misspelt_task_is_recognized():
    (diagnostic,) = check_experiment("task: superviced\nnetwork: net.neural\n")
    assert (diagnostic.code, diagnostic.fix.text) == ("E0808", "supervised")


def test_a_misspelt_choice_has_a_fix():
    text = 'task: supervised\nnetwork: net.neural\ntraining:\n  device: "cuad"\n'
    (diagnostic,) = check_experiment(text)
    fixed = (
        text[: diagnostic.fix.span.start] + diagnostic.fix.text + text[diagnostic.fix.span.end :]
    )
    assert fixed.endswith("device: cuda\n")
    assert check_experiment(fixed) == ()


@pytest.mark.parametrize(
    "text", ["services:\n  web: 1\n", "task: buy milk\n", "- task: supervised\n", ": : :", ""]
)
def test_other_yaml_is_ignored(text):
    assert check_experiment(text) == ()


def test_checking_settings_does_not_import_torch():
    if "torch" not in sys.modules:
        check_experiment("task: supervised\nstep: 3\n")
        assert "torch" not in sys.modules

"""`neural dynamics --theory`, as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.errors import NeuralError


def invoke(*words):
    return CliRunner().invoke(main, ["dynamics", "--theory", *(str(word) for word in words)])


def test_the_page_has_times_switches_rates_and_advice():
    result = invoke("C=3", "m=6", "--until", 30)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for name in ("soft", "hard", "lvml", "soft → hard", "lvml → hard", "steepest"):
        assert any(line.startswith(f"  {name}  ") for line in lines), name
    for title in (
        "time until the focus is α",
        "when to switch",
        "how the focus finishes",
        "advice",
        "slope of log(1 − α) against log t, from t = 100,000 to 1,000,000",
    ):
        assert title in lines
    assert "focus held at α, classifier trained until t = 30" in lines
    assert "cheapest to a focus of 0.95 with C = 3, m = 6" in " ".join(result.stdout.split())
    assert max(map(len, lines)) <= 80


def test_json_has_every_value_and_the_plots_are_drawn(tmp_path):
    result = invoke(
        "m=6",
        "C=3",
        "--alpha",
        "0.4,0.2",
        "--rate",
        2,
        "--until",
        50,
        "--out",
        tmp_path / "drawn",
        "--json",
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["setting"] == {"classes": 3, "segments": 6, "rate": 2.0}
    assert data["fixed_focus"]["alphas"] == [0.2, 0.4]
    assert [len(row) for row in data["fixed_focus"]["loss"]["soft"]] == [2, 2, 2]
    soft = data["schedules"][0]
    assert soft["name"] == "soft"
    assert soft["times"] == sorted(soft["times"])
    assert len(soft["trajectory"]["time"]) == len(soft["trajectory"]["focus"]) > 100
    assert abs(soft["descent"]["focus"][-1] - 0.5) < 0.5
    assert {switch["name"] for switch in data["switches"]} == {"soft → hard", "lvml → hard"}
    assert {path.stem for path in (tmp_path / "drawn").iterdir()} == {
        "theory_held",
        "theory_motion",
        "theory_late",
    }
    assert sorted(data["drawn"]) == sorted(str(path) for path in (tmp_path / "drawn").iterdir())
    assert len(data["drawn"]) == 6


def test_measure_uses_small_steps(monkeypatch):
    def report_steps(*_, fine_steps, **__):
        raise NeuralError(f"fine_steps: {fine_steps}")

    monkeypatch.setattr("neural.tasks.focus.theory.overview.compute_overview", report_steps)
    assert "fine_steps: True" in invoke("C=3", "m=3", "--measure").stderr
    assert "fine_steps: False" in invoke("C=3", "m=3").stderr


def test_a_setting_too_large_to_measure_is_predicted():
    result = invoke("C=100", "m=100,000", "--alpha", "0.5")
    assert result.exit_code == 0, result.output
    assert "not measured" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["C=3", "m=1"], "m is the number of segments and must be at least 2, got 1"),
        (["C=1", "m=10"], "C is the number of classes and must be at least 2, got 1"),
        (["C=3"], "m missing"),
        ([], "C and m missing"),
        (["C=3", "m=x"], "`m=x`: m must be an integer"),
        (["C=3", "m=4", "n=5"], "`n=5`: the theory takes C=… (classes) and m=… (segments)"),
        (["C=3", "m=4", "m=5"], "m is given twice"),
        (["C=3", "m=4", "--alpha", "0.2,1"], "between 0 and 1, both excluded, got 1"),
        (["C=3", "m=4", "--alpha", "0,0.2"], "between 0 and 1, both excluded, got 0"),
        (["C=3", "m=4", "--alpha", "nan"], "between 0 and 1"),
        (["C=3", "m=4", "--alpha", "a,b"], "numbers separated by commas"),
        (["C=3", "m=4", "--rate", "0"], "rate r must be positive"),
        (["C=3", "m=4", "--rate", "inf"], "rate r must be positive and finite"),
        (["C=3", "m=4", "--until", "-5"], "the last time must be from 1"),
        (["C=3", "m=4", "--until", "nan"], "the last time must be from 1"),
        (["examples/tiny.neural"], "the theory takes C=…"),
    ],
)
def test_errors_are_messages(words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_cannot_be_created_is_a_message(tmp_path):
    (tmp_path / "file").write_text("")
    result = invoke("C=2", "m=2", "--until", 5, "--out", tmp_path / "file" / "drawn")
    assert result.exit_code == 2
    assert "--out" in result.stderr


@pytest.mark.parametrize("option", [["--out", "drawn"], ["--alpha", "0.5"], ["--measure"]])
def test_options_of_the_theory_are_not_ignored_in_a_comparison(option):
    result = CliRunner().invoke(main, ["dynamics", "examples/demo/focus.yaml", *option])
    assert result.exit_code == 2
    assert f"{option[0]} needs --theory" in result.stderr

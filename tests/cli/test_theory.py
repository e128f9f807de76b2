"""`neural dynamics --theory`, as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural.cli._mistakes import Refused
from neural.cli.main import main


def typed(*words):
    return CliRunner().invoke(main, ["dynamics", "--theory", *(str(word) for word in words)])


def test_the_page_has_times_switches_rates_and_advice():
    shown = typed("C=3", "m=6", "--until", 30)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    for name in ("soft", "hard", "lvml", "soft → hard", "lvml → hard", "steepest"):
        assert any(line.startswith(f"  {name}  ") for line in lines), name
    for title in ("time until the focus is α", "when to switch", "how the focus finishes", "advice",
                  "slope of log(1 − α) against log t, from t = 100,000 to 1,000,000"):  # fmt: skip
        assert title in lines
    assert "focus held at α, classifier trained until t = 30" in lines
    assert "cheapest to a focus of 0.95 with C = 3, m = 6" in " ".join(shown.stdout.split())
    assert max(map(len, lines)) <= 80


def test_json_has_every_number_and_the_pictures_are_drawn(tmp_path):
    shown = typed("m=6", "C=3", "--alpha", "0.4,0.2", "--rate", 2, "--until", 50, "--out", tmp_path / "drawn", "--json")
    assert shown.exit_code == 0, shown.output
    said = json.loads(shown.stdout)
    assert said["setting"] == {"classes": 3, "segments": 6, "rate": 2.0}
    assert said["held"]["alphas"] == [0.2, 0.4]
    assert [len(row) for row in said["held"]["loss"]["soft"]] == [2, 2, 2]
    soft = said["schedules"][0]
    assert soft["name"] == "soft"
    assert soft["times"] == sorted(soft["times"])
    assert len(soft["path"]["time"]) == len(soft["path"]["focus"]) > 100
    assert abs(soft["measured"]["focus"][-1] - 0.5) < 0.5
    assert {one["name"] for one in said["switches"]} == {"soft → hard", "lvml → hard"}
    assert {path.stem for path in (tmp_path / "drawn").iterdir()} == {"theory_held", "theory_motion", "theory_late"}
    assert sorted(said["drawn"]) == sorted(str(path) for path in (tmp_path / "drawn").iterdir())
    assert len(said["drawn"]) == 6


def test_measuring_asks_for_small_steps(monkeypatch):
    def only(*_, finely, **__):
        raise Refused(f"finely: {finely}")

    monkeypatch.setattr("neural.cli._theory.overview", only)
    assert "finely: True" in typed("C=3", "m=3", "--measure").stderr
    assert "finely: False" in typed("C=3", "m=3").stderr


def test_a_setting_too_large_to_measure_is_predicted_all_the_same():
    shown = typed("C=100", "m=100,000", "--alpha", "0.5")
    assert shown.exit_code == 0, shown.output
    assert "not measured here" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["C=3", "m=1"], "m is the number of segments and must be 2 or more, got 1"),
        (["C=1", "m=10"], "C is the number of classes and must be 2 or more, got 1"),
        (["C=3"], "m not said"),
        ([], "C and m not said"),
        (["C=3", "m=x"], "`m=x`: m is a whole number"),
        (["C=3", "m=4", "n=5"], "`n=5`: the theory takes C=… (classes) and m=… (segments)"),
        (["C=3", "m=4", "m=5"], "m is said twice"),
        (["C=3", "m=4", "--alpha", "0.2,1"], "between 0 and 1, both excluded, got 1"),
        (["C=3", "m=4", "--alpha", "0,0.2"], "between 0 and 1, both excluded, got 0"),
        (["C=3", "m=4", "--alpha", "nan"], "between 0 and 1"),
        (["C=3", "m=4", "--alpha", "a,b"], "numbers with commas between them"),
        (["C=3", "m=4", "--rate", "0"], "rate r must be more than 0"),
        (["C=3", "m=4", "--rate", "inf"], "rate r must be more than 0 and finite"),
        (["C=3", "m=4", "--until", "-5"], "the last time must be from 1"),
        (["C=3", "m=4", "--until", "nan"], "the last time must be from 1"),
        (["examples/tiny.neural"], "the theory takes C=…"),
    ],
)
def test_mistakes_are_messages(words, says):
    shown = typed(*words)
    assert shown.exit_code == 2
    assert says in shown.stderr
    assert "Traceback" not in shown.output


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path):
    (tmp_path / "file").write_text("")
    shown = typed("C=2", "m=2", "--until", 5, "--out", tmp_path / "file" / "drawn")
    assert shown.exit_code == 2
    assert "--out" in shown.stderr

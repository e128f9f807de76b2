"""`neural study` as a user types it: on real processes, interrupted, and started again."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.data.downloads import DOWNLOADS
from neural.workflows.study import read_study
from tests.cli.test_sweep import TIMEOUT_SECONDS, wait_for
from tests.studies import STUDY, write_study

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "language_model"
LONG = "set: [training.steps=120, training.checkpoint_every=1]\n"


def invoke(*words):
    return CliRunner().invoke(main, ["study", *(str(word) for word in words)])


def test_a_study_is_interrupted_resumed_and_reported(start_neural, tmp_path, monkeypatch):
    write_study(tmp_path, STUDY.replace("[0, 1]", "[0]").replace("every: 2", "every: 20") + LONG)
    process = start_neural(tmp_path, "study", "evolve.yaml")
    wait_for(lambda: [*tmp_path.glob("runs/*_evolve/*_numbers_seed-0/checkpoints/*.json")], process)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130, stderr
    assert "note: fewer than 5 seeds decide nothing" in stderr
    assert "resume with: neural study evolve.yaml" in stderr
    assert "Traceback" not in stderr

    again = start_neural(tmp_path, "study", "evolve.yaml")
    stdout, stderr = again.communicate(timeout=TIMEOUT_SECONDS)
    assert again.returncode == 0, stderr
    (folder,) = tmp_path.glob("runs/*_evolve")
    assert f"resumes runs/{folder.name}, 1 trial, 1 to train; --new would start again" in stderr
    assert "EVO001  undecided  " in stdout
    assert f"report: runs/{folder.name}/report.html" in stdout
    assert (folder / "report.html").stat().st_size > 10_000

    monkeypatch.chdir(tmp_path)
    third = invoke("evolve.yaml", "--json")
    assert third.exit_code == 0, third.output
    data = json.loads(third.stdout)
    assert (data["state"], data["finished"], data["folder"]) == ("finished", 1, str(folder))
    assert [group["title"] for group in data["groups"]] == ["numbers"]


def test_a_dry_run_estimates_the_time_and_writes_nothing(tmp_path):
    path = write_study(tmp_path)
    result = invoke(path, "--dry-run", "--runs", tmp_path / "runs", "--workers", "1")
    assert result.exit_code == 0, result.output
    assert "evolve: 2 trials of small.yaml, 1 at the same time" in result.output
    assert "numbers.txt: 2 seeds, each" in result.output and "12 steps of" in result.output
    assert "nothing was written (--dry-run)" in result.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file"),
        (["evolve.yaml", "--runner", "lcoal"], "did you mean `local`?"),
        (["evolve.yaml", "--set", "every=0"], "`every` must be a whole number of 1 or more"),
        (["evolve.yaml", "--set", "data=[nothing.txt]"], "nothing.txt"),
    ],
)
def test_an_error_is_a_message(tmp_path, monkeypatch, words, message):
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("evolution*.yaml")), ids=lambda path: path.stem
)
def test_the_examples_are_valid_and_name_their_command(path, tmp_path, monkeypatch):
    for name in DOWNLOADS:  # a short text is enough; nothing is downloaded
        (tmp_path / f"{name}.txt").write_text(
            "\n".join(f"{number} and {number * number}" for number in range(900))
        )
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert path.read_text().startswith(f"# neural study {path.relative_to(ROOT)}")
    study = read_study(path)
    assert study.notes == []
    assert len(study.settings.seeds) == 5
    assert all(re.search(r"\* [46]\n", task.program) for task in study.tasks.values()), (
        "layers 4 to 6 are compared"
    )


def test_a_plan_shows_detectable_effects_and_times(tmp_path, monkeypatch):
    write_study(tmp_path, STUDY.replace("every: 2", "every: 1"))
    monkeypatch.chdir(tmp_path)
    result = invoke("evolve.yaml", "--plan")
    assert result.exit_code == 0, result.output
    rows = [line.split("  ") for line in result.stdout.splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    requested = next(row for row in rows if row[0] == "2 (in the file)")
    assert requested[2:] == ["too few seeds to decide", "–", "–", "–"]
    five, ten = (next(row for row in rows if row[0] == seeds) for seeds in ("5", "10"))
    assert five[2] == "2.3 SD away"
    assert ten[2] == "1.1 SD away"
    assert not [*tmp_path.glob("runs/*")]

"""`neural study` as a user types it: on real processes, interrupted, and started again."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.study import read_study
from neural.tasks.data.downloads import DOWNLOADS
from tests.cli.test_sweep import PATIENCE, until
from tests.studies import STUDY, write_study

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "language_model"
LONG = "set: [training.steps=120, training.checkpoint_every=1]\n"


def typed(*words):
    return CliRunner().invoke(main, ["study", *(str(word) for word in words)])


def start(folder, *words):
    command = [sys.executable, "-m", "neural", "study", *words]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, start_new_session=True, **pipe)


def test_a_study_is_interrupted_goes_on_and_reports(tmp_path, monkeypatch):
    write_study(tmp_path, STUDY.replace("[0, 1]", "[0]").replace("every: 2", "every: 20") + LONG)
    begun = start(tmp_path, "evolve.yaml")
    until(lambda: [*tmp_path.glob("runs/*_evolve/*_numbers_seed-0/checkpoints/*.json")], begun)
    os.killpg(begun.pid, signal.SIGINT)
    _, said = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 130, said
    assert "note: fewer than 5 seeds decide nothing" in said
    assert "go on with: neural study evolve.yaml" in said
    assert "Traceback" not in said

    again = start(tmp_path, "evolve.yaml")
    out, said = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, said
    (folder,) = tmp_path.glob("runs/*_evolve")
    assert f"goes on with runs/{folder.name}, 1 trial, 1 to train; --new would begin anew" in said
    assert "EVO001  undecided  " in out
    assert f"report: runs/{folder.name}/report.html" in out
    assert (folder / "report.html").stat().st_size > 10_000

    monkeypatch.chdir(tmp_path)
    third = typed("evolve.yaml", "--json")
    assert third.exit_code == 0, third.output
    data = json.loads(third.stdout)
    assert (data["state"], data["finished"], data["folder"]) == ("finished", 1, str(folder))
    assert [one["title"] for one in data["groups"]] == ["numbers"]


def test_a_dry_run_says_how_long_and_writes_nothing(tmp_path):
    path = write_study(tmp_path)
    shown = typed(path, "--dry-run", "--runs", tmp_path / "runs", "--workers", "1")
    assert shown.exit_code == 0, shown.output
    assert "evolve: 2 trials of small.yaml, 1 at the same time" in shown.output
    assert "numbers.txt: 2 seeds, each" in shown.output and "12 steps of" in shown.output
    assert "nothing was written (--dry-run)" in shown.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file"),
        (["evolve.yaml", "--on", "lcoal"], "did you mean `local`?"),
        (["evolve.yaml", "--set", "every=0"], "`every` must be a whole number of 1 or more"),
        (["evolve.yaml", "--set", "data=[nothing.txt]"], "nothing.txt"),
    ],
)
def test_a_mistake_is_a_message(tmp_path, monkeypatch, words, said):
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = typed(*words)
    assert shown.exit_code == 2
    assert said in shown.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("evolution*.yaml")), ids=lambda path: path.stem)
def test_the_examples_check_and_say_how_to_run_them(path, tmp_path, monkeypatch):
    for name in DOWNLOADS:   # the beginning of a text is enough; nothing is downloaded
        (tmp_path / f"{name}.txt").write_text("\n".join(f"{number} and {number * number}" for number in range(900)))
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert path.read_text().startswith(f"# neural study {path.relative_to(ROOT)}")
    study = read_study(path)
    assert study.notes == []
    assert len(study.settings.seeds) == 5
    assert all(re.search(r"\* [46]\n", task.program) for task in study.tasks.values()), "layers 4 to 6 are compared"


def test_a_plan_says_what_seeds_find_and_how_long_they_take(tmp_path, monkeypatch):
    write_study(tmp_path, STUDY.replace("every: 2", "every: 1"))
    monkeypatch.chdir(tmp_path)
    result = typed("evolve.yaml", "--plan")
    assert result.exit_code == 0, result.output
    rows = [line.split("  ") for line in result.stdout.splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    asked = next(row for row in rows if row[0] == "2 (asked)")
    assert asked[2:] == ["nothing is decided", "–", "–", "–"]
    five, ten = (next(row for row in rows if row[0] == seeds) for seeds in ("5", "10"))
    assert five[2] == "2.3 SD away"
    assert ten[2] == "1.1 SD away"
    assert not [*tmp_path.glob("runs/*")]

"""Another package adds a task, a measure, a schedule, an export format and a check, each in one file.

The files of tests/extensions/ are installed as a package with entry points; the command line is unchanged.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.forked_commands import ForkedCommands

SOURCE = Path(__file__).parent / "extensions"
ENTRY_POINTS = {
    "neural.tasks": "peak_position = peaklab.peak_position:PeakPosition",
    "neural.capture.measures": "own_weight = peaklab.own_weight:OwnWeight",
    "neural.optim.schedules": "Staircase = peaklab.staircase:Staircase",
    "neural.exports": "numpy_weights = peaklab.numpy_weights:NumpyWeights",
    "neural.findings.checks": "low_accuracy = peaklab.low_accuracy:LowAccuracy",
}
EXPERIMENT = """task: peak_position
name: peaks
examples: 40
training:
  steps: 12
  validate_every: 4
  optimizer: Adam(learning_rate=0.01)
  scheduler: Staircase(every=4)
tracking: {track_every: 4, measures: [entropy, own_weight]}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A folder with the installed package and a trained run; returns a function that runs commands."""
    folder = tmp_path_factory.mktemp("lab")
    package = folder / "site" / "peaklab"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text('"""Extensions of neural."""\n')
    info = folder / "site" / "peaklab-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: peaklab\nVersion: 0.1\n")
    groups = [f"[{group}]\n{line}\n" for group, line in ENTRY_POINTS.items()]
    (info / "entry_points.txt").write_text("\n".join(groups))
    (folder / "peaks.yaml").write_text(EXPERIMENT)
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    with ForkedCommands(environment) as commands:

        def neural(*arguments: str) -> str:
            done = commands.run("neural", *arguments, cwd=folder)
            assert done.returncode == 0, done.stderr
            return done.stdout

        neural("train", "peaks.yaml", "--quiet")
        neural.folder = folder
        yield neural


def test_the_task_is_trained_with_the_schedule_and_the_measure(lab):
    shown = json.loads(lab("show", "peaks", "--json"))
    assert shown["state"] == "finished", shown
    assert "own_weight" in lab("show", "peaks")


def test_the_schedule_sets_the_learning_rate(lab):
    from neural.runs.run import Run

    (path,) = (lab.folder / "runs").iterdir()
    with Run.open(path) as run:
        _, rates = run.scalars("train/learning_rate")
    assert rates[0] == pytest.approx(0.01) and rates[-1] == pytest.approx(0.0025)


def test_the_task_predicts_and_evaluates_through_the_unchanged_commands(lab):
    np.save(lab.folder / "rows.npy", np.random.default_rng(1).normal(size=(3, 7, 4)))
    lines = lab("predict", "peaks", "rows.npy", "--json").splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [["position"]] * 3
    assert "position" in lab("predict", "peaks", "rows.npy")
    scores = json.loads(lab("evaluate", "peaks", "--json"))["scores"]
    assert set(scores) == {"valid/loss", "valid/accuracy"}


def test_a_command_that_the_task_does_not_offer_is_refused_with_its_name(lab):
    with pytest.raises(AssertionError, match=r"is a run of `peak_position`: it generates no text"):
        lab("generate", "peaks")


def test_the_check_is_part_of_the_analysis(lab):
    findings = json.loads(lab("analyze", "peaks", "--json"))
    codes = {finding["code"] for group in findings for finding in group["findings"]}
    assert "PEAK01" in codes


def test_the_report_shows_the_measure_and_the_section_of_the_task(lab):
    lab("report", "peaks", "-o", "report.html")
    page = (lab.folder / "report.html").read_text(encoding="utf-8")
    assert "own_weight" in page and "Sequences of 7 positions." in page


def test_the_export_format_is_listed_and_writes_what_it_reads(lab):
    assert "All weights in one .npz file." in lab("export", "--help")
    lab("export", "peaks", "--to", "numpy_weights", "-o", "weights.npz")
    with np.load(lab.folder / "weights.npz") as file:
        assert len(file.files) > 4

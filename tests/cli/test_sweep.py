"""`neural sweep` in real processes, killed and interrupted while it runs."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.run import Run
from neural.training.runners import registry as runners
from tests.sweeps import write_sweep
from tests.workflows.test_sweep import ScriptedRunner

LONG = "set: [training.steps=100, training.checkpoint_every=1, tracking.track_every=0]\n"
TIMEOUT_SECONDS = 240
"""A loaded machine may need long to import torch."""


def interrupt(process):
    """Send SIGINT to all processes of the group, as Ctrl-C in a terminal does."""
    os.killpg(process.pid, signal.SIGINT)


def wait_for(condition, process):
    """Wait until the condition returns a true value; fail if the process ends before."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if value := condition():
            return value
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"the process ended or the time is over: {process.communicate()}")


def find_saved_run(folder, trial=""):
    """The path of a run with a checkpoint, or None."""
    return next(
        (file.parents[1] for file in folder.glob(f"runs/*_rates/*{trial}/checkpoints/*.json")), None
    )


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_trial_that_is_killed_is_started_again_from_its_checkpoint(start_neural, tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\nretries: 1\n" + LONG)
    sweep = start_neural(tmp_path, "sweep", "rates.yaml", "--workers", "2", "--json")
    path = wait_for(lambda: find_saved_run(tmp_path, "seed-1"), sweep)
    os.kill(Run.open(path).status.pid, signal.SIGKILL)
    stdout, stderr = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert sweep.returncode == 0, stderr
    assert "failed    seed-1  attempt 1: killed by SIGKILL" in stderr
    assert "running   seed-1  attempt 2" in stderr
    data = json.loads(stdout)
    attempts = {row["trial"]["name"]: row["attempts"] for row in data["ranked"]}
    assert attempts == {"seed-0": 1, "seed-1": 2}
    run = Run.open(path)
    assert [kind for _, kind, _, _ in run.events()] == ["restart"]
    assert run.status.step == len(run.scalars("train/loss")[0]) == 100
    result = invoke("runs", "--runs", tmp_path / "runs").output
    assert re.search(r"_rates +finished +2/2 trials", result)
    table = invoke("show", path.parent).output
    assert "seed-0" in table and "show one: neural show" in table


def test_an_interrupted_sweep_saves_and_names_the_resume_command(start_neural, tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n" + LONG)
    sweep = start_neural(tmp_path, "sweep", "rates.yaml")
    path = wait_for(lambda: find_saved_run(tmp_path), sweep)
    interrupt(sweep)
    stdout, stderr = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert sweep.returncode == 130, stderr
    assert "Traceback" not in stderr
    run = Run.open(path)
    assert run.status.state == "stopped"
    stopped = run.status.step
    assert run.checkpoints()[-1].step == stopped < 100
    assert f"neural sweep --resume runs/{path.parent.name}" in stdout
    again = start_neural(tmp_path, "sweep", "--resume")
    stdout, stderr = again.communicate(timeout=TIMEOUT_SECONDS)
    assert again.returncode == 0, stderr
    assert run.status.state == "finished"
    assert run.status.step == 100
    assert run.events()[-1][0] == stopped, "it resumed from there"


def test_the_children_of_a_killed_sweep_save_and_stop(start_neural, tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n" + LONG.replace("=100,", "=100000,"))
    sweep = start_neural(tmp_path, "sweep", "rates.yaml")
    path = wait_for(lambda: find_saved_run(tmp_path), sweep)
    sweep.kill()
    sweep.communicate()
    end = time.monotonic() + TIMEOUT_SECONDS
    while Run.open(path).status.state == "running" and time.monotonic() < end:
        time.sleep(0.1)
    status = Run.open(path).status
    if status.state == "running":
        os.kill(status.pid, signal.SIGKILL)
    assert status.state == "stopped"
    assert "stopped" in invoke("runs", "--runs", tmp_path / "runs").output
    listed = invoke("sweep", "--resume", path.parent, "--dry-run")
    assert listed.output == "seed-0\n1 trial; nothing was started\n"


def test_a_trial_that_cannot_train_is_named_with_its_reason(start_neural, tmp_path):
    sweep = write_sweep(
        tmp_path,
        "experiment: tiny.neural\nset: [training.steps=50, training.learning_rate=1e6]\n"
        "retries: 0\n",
    )
    sweep = start_neural(tmp_path, "sweep", "rates.yaml")
    stdout, stderr = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert sweep.returncode == 1, stderr
    assert re.search(
        r"failed: seed-0: error: (loss|gradient norm) is (NaN|infinite) at step", stdout
    )
    assert "run the unfinished trials: neural sweep --resume" in stdout


def test_a_dry_run_lists_the_trials_and_writes_nothing(tmp_path):
    path = write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [3, 4]\n")
    result = invoke("sweep", path, "--dry-run", "--runs", tmp_path / "runs")
    assert result.output == "seed-3\nseed-4\n2 trials; nothing was started\n"
    assert not (tmp_path / "runs").exists()


def test_the_best_is_confirmed_with_fresh_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "get", lambda name: lambda workers: ScriptedRunner(workers=2))
    path = write_sweep(
        tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\ngrid: {training.batch_size: [4, 8]}\n"
    )
    result = invoke("sweep", path, "--runs", tmp_path / "runs", "--confirm", "2", "--json")
    assert result.exit_code == 0, result.output
    assert "4 trials with fresh seeds to confirm the best" in result.stderr
    data = json.loads(result.stdout)
    assert data["finished"] == 8
    assert data["confirmation"]["seeds"] == [2, 3]
    assert [point["seeds"] for point in data["points"]] == [2, 2], (
        "fresh seeds are not used for selection"
    )
    again = invoke("sweep", "--resume", data["sweep"], "--confirm", "3")
    assert again.exit_code == 2
    assert "already confirmed with 2 fresh seeds" in again.output


def test_set_changes_all_trials_and_the_selected_setting_can_be_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "get", lambda name: lambda workers: ScriptedRunner(workers=2))
    monkeypatch.chdir(tmp_path)
    write_sweep(
        tmp_path,
        "experiment: tiny.neural\nset: [training.steps=4]\ngrid: {training.batch_size: [4, 8]}\n",
    )
    result = invoke("sweep", "rates.yaml", "--set", "training.steps=3")
    assert result.exit_code == 0, result.output
    (table,) = (tmp_path / "runs").glob("*_rates/trials.json")
    trials = [row["trial"] for row in json.loads(table.read_text())["trials"]]
    shared = ["training.steps=4", "training.steps=3"]
    assert [trial["overrides"][:2] for trial in trials] == [shared, shared]
    match = re.search(r"train the selected setting: neural (train tiny.neural .*)", result.stdout)
    assert re.fullmatch(
        "train tiny.neural --set training.steps=4 --set training.steps=3 "
        "--set training.batch_size=[48]",
        match[1],
    )
    trained = invoke(*match[1].split(), "--quiet", "--runs", "trained")
    assert trained.exit_code == 0, trained.output
    assert Run.open(trained.stdout.strip()).settings["training"]["steps"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume", "--set", "training.steps=3"], "a resumed sweep keeps its settings"),
        (["rates.yaml", "--set", "training.stepz=3"], "did you mean `steps`"),
        (["rates.yaml", "--set", "training.batch_size=3"], "are in `grid` of rates.yaml"),
        (["rates.yaml", "--set", "training.seed=3"], "are in `seeds` of rates.yaml"),
    ],
)
def test_overrides_that_make_no_sense_are_refused(words, message, tmp_path, monkeypatch):
    write_sweep(tmp_path, "experiment: tiny.neural\ngrid: {training.batch_size: [4, 8]}\n")
    monkeypatch.chdir(tmp_path)
    result = invoke("sweep", *words)
    assert result.exit_code == 2
    assert message in result.output


def test_a_dry_run_counts_confirmation_trials(tmp_path):
    path = write_sweep(tmp_path, "experiment: tiny.neural\ngrid: {training.batch_size: [4, 8]}\n")
    result = invoke("sweep", path, "--dry-run", "--confirm", "5")
    assert "2 trials, then 10 to confirm the best; nothing was started" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file"),
        (["rates.yaml", "--confirm", "3"], "the grid needs two settings or more"),
        ([], "name the file of a sweep, or --resume a folder"),
        (["rates.yaml", "--runner", "lcoal"], "did you mean `local`?"),
        (["--resume", "."], "is not the folder of a sweep"),
        (["--resume"], "there is no sweep in runs"),
    ],
)
def test_an_error_is_a_message(tmp_path, monkeypatch, words, message):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    monkeypatch.chdir(tmp_path)
    result = invoke("sweep", *words)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "runs").exists()


def test_without_ray_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    path = write_sweep(tmp_path, "experiment: tiny.neural\n")
    result = invoke("sweep", path, "--runner", "ray", "--runs", tmp_path / "runs")
    assert result.exit_code == 2
    assert 'pip install "neural-lab[sweep]"' in result.output
    assert not (tmp_path / "runs").exists()


def test_the_example_is_valid_and_names_its_command():
    path = Path(__file__).parents[2] / "examples" / "sweep.yaml"
    assert path.read_text().startswith("# neural sweep examples/sweep.yaml\n")
    result = invoke("sweep", path, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "4 trials" in result.output


def test_folds_are_listed_and_trained(tmp_path, monkeypatch):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    monkeypatch.chdir(tmp_path)
    listed = invoke("sweep", "tiny.neural", "--folds", "2", "--dry-run")
    assert listed.stdout.splitlines() == [
        "fold-1-2_seed-0",
        "fold-2-2_seed-0",
        "2 trials; nothing was started",
    ]
    monkeypatch.setattr(runners, "get", lambda name: lambda workers: ScriptedRunner())
    done = invoke("sweep", "tiny.neural", "--folds", "2")
    assert done.exit_code == 0, done.output
    assert "Means over 2 of 2 folds" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume", "--folds", "3"], "a resumed sweep keeps its folds"),
        (["tiny.neural", "--folds", "1"], "1 is not in the range"),
        (["tiny.neural"], "is a program"),
        (["tiny.neural", "--folds", "3", "--confirm", "3"], "the grid needs two settings or more"),
    ],
)
def test_folds_that_make_no_sense_are_refused(words, message, tmp_path, monkeypatch):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    monkeypatch.chdir(tmp_path)
    result = invoke("sweep", *words)
    assert result.exit_code == 2
    assert message in result.output

"""`neural sweep` on real processes: as a user types it, killed and interrupted in the middle."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.tracking.run import Run
from neural.training.runners import registry as runners
from tests.sweeps import write_sweep
from tests.test_sweep import Scripted

LONG = "set: [training.steps=100, training.checkpoint_every=1, tracking.track_every=0]\n"
PATIENCE = 240
"""Seconds; a loaded machine may need many to import torch."""


def start(folder, *words):
    command = [sys.executable, "-m", "neural", "sweep", *words]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, start_new_session=True, **pipe)


def interrupt(process):
    """As Ctrl-C in a terminal does: the signal goes to every process of the group."""
    os.killpg(process.pid, signal.SIGINT)


def until(found, process):
    """Wait for something while a process runs."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if value := found():
            return value
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"it did not come to that: {process.communicate()}")


def saved(folder, trial=""):
    """A run that has a checkpoint."""
    return next((one.parents[1] for one in folder.glob(f"runs/*_rates/*{trial}/checkpoints/*.json")), None)


def typed(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_trial_that_is_killed_is_started_again_from_its_checkpoint(tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\nretries: 1\n" + LONG)
    sweep = start(tmp_path, "rates.yaml", "--workers", "2", "--json")
    path = until(lambda: saved(tmp_path, "seed-1"), sweep)
    os.kill(Run.open(path).status.pid, signal.SIGKILL)
    out, said = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 0, said
    assert "failed    seed-1  attempt 1: killed by SIGKILL" in said
    assert "running   seed-1  attempt 2" in said
    data = json.loads(out)
    attempts = {row["trial"]["name"]: row["attempts"] for row in data["ranked"]}
    assert attempts == {"seed-0": 1, "seed-1": 2}
    run = Run.open(path)
    assert [kind for _, kind, _, _ in run.events()] == ["restart"]
    assert run.status.step == len(run.scalars("train/loss")[0]) == 100
    shown = typed("runs", "--runs", tmp_path / "runs").output
    assert re.search(r"_rates +finished +2/2 trials", shown)
    table = typed("show", path.parent).output
    assert "seed-0" in table and "look at one: neural show" in table


def test_an_interrupted_sweep_saves_and_says_how_to_go_on(tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n" + LONG)
    sweep = start(tmp_path, "rates.yaml")
    path = until(lambda: saved(tmp_path), sweep)
    interrupt(sweep)
    out, said = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 130, said
    assert "Traceback" not in said
    run = Run.open(path)
    assert run.status.state == "stopped"
    stopped = run.status.step
    assert run.checkpoints()[-1].step == stopped < 100
    assert f"neural sweep --resume runs/{path.parent.name}" in out
    again = start(tmp_path, "--resume")
    out, said = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, said
    assert run.status.state == "finished"
    assert run.status.step == 100
    assert run.events()[-1][0] == stopped, "it went on from there"


def test_the_children_of_a_killed_sweep_save_and_stop(tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n" + LONG.replace("=100,", "=100000,"))
    sweep = start(tmp_path, "rates.yaml")
    path = until(lambda: saved(tmp_path), sweep)
    sweep.kill()
    sweep.communicate()
    end = time.monotonic() + PATIENCE
    while Run.open(path).status.state == "running" and time.monotonic() < end:
        time.sleep(0.1)
    status = Run.open(path).status
    if status.state == "running":
        os.kill(status.pid, signal.SIGKILL)
    assert status.state == "stopped"
    assert "stopped" in typed("runs", "--runs", tmp_path / "runs").output
    listed = typed("sweep", "--resume", path.parent, "--dry-run")
    assert listed.output == "seed-0\n1 trial; nothing was started\n"


def test_a_trial_that_cannot_train_is_named_with_its_reason(tmp_path):
    sweep = write_sweep(tmp_path, "experiment: tiny.neural\nset: [training.steps=50, training.learning_rate=1e30]\n"
                        "retries: 0\n")  # fmt: skip
    sweep = start(tmp_path, "rates.yaml")
    out, said = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 1, said
    assert re.search(r"failed: seed-0: error: the (loss|gradients' norm) is (nan|inf) at step", out)
    assert "run what is not finished: neural sweep --resume" in out


def test_a_dry_run_lists_the_trials_and_writes_nothing(tmp_path):
    path = write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [3, 4]\n")
    shown = typed("sweep", path, "--dry-run", "--runs", tmp_path / "runs")
    assert shown.output == "seed-3\nseed-4\n2 trials; nothing was started\n"
    assert not (tmp_path / "runs").exists()


def test_the_best_is_confirmed_with_fresh_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "get", lambda place: lambda workers: Scripted(workers=2))
    path = write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\ngrid: {training.batch_size: [4, 8]}\n")
    shown = typed("sweep", path, "--runs", tmp_path / "runs", "--confirm", "2", "--json")
    assert shown.exit_code == 0, shown.output
    assert "4 trials with fresh seeds to confirm the best" in shown.stderr
    data = json.loads(shown.stdout)
    assert data["finished"] == 8
    assert data["confirmation"]["seeds"] == [2, 3]
    assert [point["seeds"] for point in data["points"]] == [2, 2], "fresh seeds select nothing"
    again = typed("sweep", "--resume", data["sweep"], "--confirm", "3")
    assert again.exit_code == 2
    assert "confirmed with 2 fresh seeds already" in again.output


def test_a_dry_run_counts_what_confirms(tmp_path):
    path = write_sweep(tmp_path, "experiment: tiny.neural\ngrid: {training.batch_size: [4, 8]}\n")
    shown = typed("sweep", path, "--dry-run", "--confirm", "5")
    assert "2 trials, then 10 to confirm the best; nothing was started" in shown.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file"),
        (["rates.yaml", "--confirm", "3"], "the grid needs two settings or more"),
        ([], "name a sweep's file, or --resume a folder"),
        (["rates.yaml", "--on", "lcoal"], "did you mean `local`?"),
        (["--resume", "."], "is not the folder of a sweep"),
        (["--resume"], "there is no sweep in runs"),
    ],
)
def test_a_mistake_is_a_message(tmp_path, monkeypatch, words, said):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    monkeypatch.chdir(tmp_path)
    shown = typed("sweep", *words)
    assert shown.exit_code == 2
    assert said in shown.output
    assert not (tmp_path / "runs").exists()


def test_without_ray_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    path = write_sweep(tmp_path, "experiment: tiny.neural\n")
    shown = typed("sweep", path, "--on", "ray", "--runs", tmp_path / "runs")
    assert shown.exit_code == 2
    assert 'pip install "neural[sweep]"' in shown.output
    assert not (tmp_path / "runs").exists()


def test_the_example_checks_and_says_how_to_run_it():
    path = Path(__file__).parents[2] / "examples" / "sweep.yaml"
    assert path.read_text().startswith("# neural sweep examples/sweep.yaml\n")
    shown = typed("sweep", path, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "4 trials" in shown.output

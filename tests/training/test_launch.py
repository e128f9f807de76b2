"""Processes of torchrun: how many, how they end; a note for tasks that SLURM starts without it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.training.launch import count_devices, describe_separate_tasks, launch_processes

PROGRAM = "examples/digits.neural"

EXIT = """
import atexit
from neural.training.launch import exit_worker

class Library:
    def __del__(self):
        print("torn down")

library = Library()
atexit.register(print, "exit handler")
print("trained")
exit_worker(3)
"""


@pytest.mark.parametrize(("processes", "is_torn_down"), [("1", True), ("2", False)])
def test_a_process_of_torchrun_ends_before_libraries_are_torn_down(processes, is_torn_down):
    done = subprocess.run(
        [sys.executable, "-c", EXIT],
        env={**os.environ, "WORLD_SIZE": processes},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    lines = ["trained", "exit handler"] + ["torn down"] * is_torn_down
    assert done.stdout.splitlines() == lines


@pytest.mark.parametrize(
    ("variables", "is_noted"),
    [
        ({}, False),
        ({"SLURM_STEP_NUM_TASKS": "1"}, False),
        ({"SLURM_STEP_NUM_TASKS": "4"}, True),
        ({"SLURM_STEP_NUM_TASKS": "4", "WORLD_SIZE": "8"}, False),  # torchrun on each node
        ({"SLURM_STEP_NUM_TASKS": "many"}, False),
    ],
    ids=["no SLURM", "one task", "four tasks", "torchrun", "not a number"],
)
def test_several_tasks_without_torchrun_are_noted(variables, is_noted, monkeypatch):
    for name in ("SLURM_STEP_NUM_TASKS", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    note = describe_separate_tasks()
    assert (note is not None) == is_noted
    assert note is None or "torchrun on each node" in note


@pytest.fixture
def launches(monkeypatch):
    """Calls of torchrun, which are not carried out."""
    calls = []
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(
        "neural.training.launch.launch_processes", lambda count: calls.append(count) or 0
    )
    return calls


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_launch_returns_130_and_leaves_no_folder(number, tmp_path, monkeypatch):
    from torch.distributed.elastic.multiprocessing.api import SignalException

    def stop(arguments):
        (folder,) = (each.partition("=")[2] for each in arguments if "--log-dir" in each)
        Path(folder, "torchelastic").mkdir()
        raise SignalException("stopped", number)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("torch.distributed.run.main", stop)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert launch_processes(2) == 130
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_more_devices_than_the_machine_has_are_refused(launches, options):
    words = ["train", PROGRAM, "--devices", str(count_devices() + 1), *options]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, launches) == (2, [])
    assert f"this machine has cores or GPUs for {count_devices()}" in result.output


def test_a_dry_run_plans_for_all_processes_and_starts_none(launches):
    words = ["train", PROGRAM, "--set", "training.steps=50", "--dry-run", "--json"]
    one = json.loads(CliRunner().invoke(main, words).stdout)
    two = json.loads(CliRunner().invoke(main, [*words, "--devices", "2"]).stdout)
    assert (two["examples"], two["epochs"]) == (2 * one["examples"], 2 * one["epochs"])
    assert launches == [] and "WORLD_SIZE" not in os.environ
    CliRunner().invoke(main, ["train", PROGRAM, "--devices", "2"])
    assert launches == [2]

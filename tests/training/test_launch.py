"""How processes of torchrun end, and a note for tasks that SLURM starts without torchrun."""

import os
import subprocess
import sys

import pytest

from neural.training.launch import describe_separate_tasks

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

"""Tasks that SLURM starts without torchrun do not train together, and are told so."""

import pytest

from neural.training.launch import describe_separate_tasks


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

"""A step gives the same result as one batch, accumulated, with DDP and with FSDP."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.runs.run import Run
from neural.tasks.focus.model import STAGE
from tests.training.equality import DISTRIBUTED_MODES, EQUAL_TO_FULL, OTHERS, RESUMED, TABLE

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
"""Largest difference of any weight or logged number. Measured: 9e-7 with Muon, else 2e-7."""
STATE_PREFIXES = ("model.", "ema.")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A function that opens the run of a case and a mode. One pair of processes trains them all."""
    folder = tmp_path_factory.mktemp("equality")
    command = [sys.executable, "-W", "error", "-m", "tests.training.equality", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def open_run(case: str, mode: str) -> Run:
        (path,) = (folder / case / mode).glob("[!.]*")
        return Run.open(path)

    return open_run


def largest_differences(run: Run, other: Run) -> dict[str, float]:
    """Largest difference by name: tensors of the last checkpoint, and logged metrics."""
    differences = {}
    tensors, others = (
        {
            name: value
            for name, value in each.load_checkpoint().tensors.items()
            if name.startswith(STATE_PREFIXES)
        }
        for each in (run, other)
    )
    assert tensors.keys() == others.keys()
    for name, value in tensors.items():
        differences[name] = float((value.double() - others[name].double()).abs().max())
    assert run.scalar_names() == other.scalar_names()
    for name in run.scalar_names():
        (steps, values), (other_steps, other_values) = run.scalars(name), other.scalars(name)
        assert steps.tolist() == other_steps.tolist()
        differences[name] = float(np.abs(values - other_values).max())
    return differences


def list_comparisons():
    """Every case in every mode that is compared with accumulation.

    A batch norm normalizes every batch by its own statistics. So with one, a full batch is another
    training than four small ones; the other modes see the same small batches and must agree.
    """
    for case in TABLE:
        for mode in ("full", "ddp", "fsdp"):
            if not (case.batch_norm and mode == "full"):
                yield pytest.param(case, mode, id=f"{case.name}-{mode}")


@pytest.mark.parametrize(("case", "mode"), list(list_comparisons()))
def test_a_step_may_be_split_into_batches_in_any_way(runs, case, mode):
    """Equal to accumulation: weights, averages, running statistics, losses, rates, norms."""
    run = runs(case.name, mode)
    differences = largest_differences(run, runs(case.name, "accumulation"))
    assert not {name: value for name, value in differences.items() if not value <= TOLERANCE}
    averages = [name for name in run.load_checkpoint().tensors if name.startswith("ema.")]
    assert bool(averages) == case.ema


@pytest.mark.parametrize("case", [case for case in TABLE if case.ema], ids=lambda case: case.name)
@pytest.mark.parametrize("mode", ["full", "accumulation", "ddp", "fsdp"])
def test_the_average_is_not_the_newest_weights(runs, case, mode):
    tensors = runs(case.name, mode).load_checkpoint().tensors
    averages = {
        name.removeprefix("ema."): value
        for name, value in tensors.items()
        if name.startswith("ema.")
    }
    assert (
        max(
            float((value - tensors[f"model.{name}"]).abs().max())
            for name, value in averages.items()
        )
        > 1e-3
    )


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        (case, mode)
        for case in OTHERS
        for mode in ("full", "ddp", "fsdp")
        if mode != "full" or case in EQUAL_TO_FULL
    ],
)
def test_every_task_learns_the_same_however_its_steps_are_split(runs, case, mode):
    run, other = runs(case, mode), runs(case, "accumulation")
    differences = largest_differences(run, other)
    differences.pop("model.schedule_state", None)  # counts the batches of one process
    if case == "hybrid-incentive":
        # every process does the check, rank 0 decides
        differences.pop("train/classifier_calls")
    assert not {name: value for name, value in differences.items() if not value <= TOLERANCE}
    events, others = (
        [(step, kind, text) for step, kind, text, _ in each.events()] for each in (run, other)
    )
    assert events == others


@pytest.mark.parametrize("mode", DISTRIBUTED_MODES)
def test_a_resumed_run_of_several_processes_is_equal_bit_for_bit(runs, mode):
    """With averaged weights, running statistics and Muon's momentum."""
    resumed, undisturbed = runs("resumed", mode), runs(RESUMED.name, mode)
    assert [kind for _, kind, _, _ in resumed.events()] == ["restart"]
    assert resumed.scalar_rows() == undisturbed.scalar_rows()
    tensors, others = resumed.load_checkpoint().tensors, undisturbed.load_checkpoint().tensors
    assert tensors.keys() == others.keys()
    assert all(torch.equal(value, others[name]) for name, value in tensors.items())


@pytest.mark.parametrize("mode", ["full", "accumulation", "ddp", "fsdp"])
def test_a_hybrid_switches_at_half_of_its_epochs(runs, mode):
    run = runs("hybrid-step", mode)
    assert int(run.load_checkpoint().tensors["model.schedule_state"][STAGE]) == 1
    assert [(step, kind) for step, kind, _, _ in run.events()] == [
        (run.metadata("steps") // 2, "switch")
    ]


@pytest.mark.parametrize("mode", ["accumulation", "ddp", "fsdp"])
def test_the_learning_rate_of_a_preset_falls_over_the_steps_of_the_run(runs, mode):
    run = runs("language_model", mode)
    steps, rates = run.scalars("train/learning_rate")
    assert len(steps) == run.metadata("steps")
    assert rates[-1] < 0.2 * rates.max()

"""However a step is cut, the training is the same: at once, accumulated, by DDP, by FSDP."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.tasks.focusing.networks import STAGE
from neural.tracking.run import Run
from tests.training.equality import ANY_CUT, OTHERS, RESUMED, TABLE, TOGETHER

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
"""Largest difference of any weight or logged number. Measured: 9e-7 with Muon, else 2e-7."""
STATE = ("model.", "average.")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A function from a case and a mode to its run. One pair of processes trains all of them."""
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
    """By name: of weights, averages and buffers in the last checkpoint, and of logged numbers."""
    differences = {}
    tensors, others = (
        {name: value for name, value in each.restore().tensors.items() if name.startswith(STATE)}
        for each in (run, other)
    )
    assert tensors.keys() == others.keys()
    for name, value in tensors.items():
        differences[name] = float((value.double() - others[name].double()).abs().max())
    assert run.names() == other.names()
    for name in run.names():
        (steps, values), (other_steps, other_values) = run.scalars(name), other.scalars(name)
        assert steps.tolist() == other_steps.tolist()
        differences[name] = float(np.abs(values - other_values).max())
    return differences


def rows_of_the_table():
    """Every case in every mode that is compared with accumulation.

    A batch norm normalises every batch by its own statistics. So with one, a full batch is another
    training than four small ones; the other modes see the same small batches and must agree.
    """
    for case in TABLE:
        for mode in ("full", "ddp", "fsdp"):
            if not (case.batch_norm and mode == "full"):
                yield pytest.param(case, mode, id=f"{case.name}-{mode}")


@pytest.mark.parametrize(("case", "mode"), list(rows_of_the_table()))
def test_a_step_may_be_cut_in_any_way(runs, case, mode):
    """As with accumulation: weights, averages, running statistics, losses, rates, norms."""
    run = runs(case.name, mode)
    differences = largest_differences(run, runs(case.name, "accumulation"))
    assert not {name: value for name, value in differences.items() if not value <= TOLERANCE}
    averages = [name for name in run.restore().tensors if name.startswith("average.")]
    assert bool(averages) == case.ema


@pytest.mark.parametrize("case", [case for case in TABLE if case.ema], ids=lambda case: case.name)
@pytest.mark.parametrize("mode", ["full", "accumulation", "ddp", "fsdp"])
def test_the_average_is_not_the_newest_weights(runs, case, mode):
    tensors = runs(case.name, mode).restore().tensors
    averages = {
        name.removeprefix("average."): value
        for name, value in tensors.items()
        if name.startswith("average.")
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
        if mode != "full" or case in ANY_CUT
    ],
)
def test_every_task_learns_the_same_however_its_steps_are_cut(runs, case, mode):
    run, other = runs(case, mode), runs(case, "accumulation")
    differences = largest_differences(run, other)
    differences.pop("model.history", None)  # counts the batches of one process
    if case == "hybrid-incentive":
        differences.pop(
            "train/classifier_calls"
        )  # every process pays for the check, the first one decides
    assert not {name: value for name, value in differences.items() if not value <= TOLERANCE}
    events, others = (
        [(step, kind, text) for step, kind, text, _ in each.events()] for each in (run, other)
    )
    assert events == others


@pytest.mark.parametrize("mode", TOGETHER)
def test_a_run_of_several_processes_that_is_resumed_is_the_same_to_the_last_bit(runs, mode):
    """With averaged weights, running statistics and Muon's momentum."""
    resumed, straight = runs("resumed", mode), runs(RESUMED.name, mode)
    assert [kind for _, kind, _, _ in resumed.events()] == ["restart"]
    assert resumed.rows() == straight.rows()
    tensors, others = resumed.restore().tensors, straight.restore().tensors
    assert tensors.keys() == others.keys()
    assert all(torch.equal(value, others[name]) for name, value in tensors.items())


@pytest.mark.parametrize("mode", ["full", "accumulation", "ddp", "fsdp"])
def test_a_hybrid_switches_at_half_of_its_epochs(runs, mode):
    run = runs("hybrid-step", mode)
    assert int(run.restore().tensors["model.history"][STAGE]) == 1
    assert [(step, kind) for step, kind, _, _ in run.events()] == [
        (run.described("steps") // 2, "switch")
    ]


@pytest.mark.parametrize("mode", ["accumulation", "ddp", "fsdp"])
def test_the_rate_of_a_preset_falls_over_the_steps_that_are_made(runs, mode):
    run = runs("language_model", mode)
    steps, rates = run.scalars("train/rate")
    assert len(steps) == run.described("steps")
    assert rates[-1] < 0.2 * rates.max()

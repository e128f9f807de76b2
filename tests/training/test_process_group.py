"""Several processes train one network: equal losses, and recovery after one dies."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neural.core.settings import dump_settings
from neural.runs.run import Run
from tests.training.programs import create_small_experiment, read_run_contents

ROOT = Path(__file__).parents[2]


def write_experiment(folder: Path, **settings) -> Path:
    """Write the small experiment to a file."""
    folder.mkdir(exist_ok=True)
    path = folder / "small.yaml"
    path.write_text(
        json.dumps(dump_settings(create_small_experiment(folder, **settings)))
    )  # JSON is YAML
    return path


LONGER = {
    "steps": 120,
    "checkpoint_every": 5,
    "validate_every": 50,
    "gradient_accumulation_steps": 2,
}
CASES = {
    "single": (1, None, {"gradient_accumulation_steps": 2}),
    "ddp": (2, None, {"gradient_accumulation_steps": 1}),
    "fsdp": (2, None, {"gradient_accumulation_steps": 1, "shard": True, "ema": 0.5}),
    "undisturbed": (2, None, LONGER),
    "resumed": (2, 40, LONGER),
}
"""Number of processes, step at which they are killed, training settings."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The finished runs of all cases, forked from one process that has imported torch."""
    folder = tmp_path_factory.mktemp("together")
    cases = {
        name: (count, str(write_experiment(folder / f"{name}-file", **settings)), killed_at)
        for name, (count, killed_at, settings) in CASES.items()
    }
    command = [sys.executable, "-m", "tests.training.together", str(folder), json.dumps(cases)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: Run.open(next((folder / name / "runs").glob("[!.]*"))) for name in CASES}


def read_metric(run: Run, name: str) -> list[float]:
    return run.scalars(name)[1].tolist()


def test_two_processes_learn_what_one_does_with_twice_the_batches(runs):
    single, ddp = runs["single"], runs["ddp"]
    for name in ("train/loss", "valid/loss"):
        assert read_metric(ddp, name) == pytest.approx(read_metric(single, name), abs=1e-5)
    assert ddp.measure_names() == single.measure_names()


def test_two_processes_with_fsdp_learn_what_one_does(runs):
    single, fsdp = runs["single"], runs["fsdp"]
    losses, fsdp_losses = (read_metric(run, "train/loss") for run in (single, fsdp))
    assert fsdp_losses == pytest.approx(losses, abs=1e-5)
    assert fsdp.measure_names() == single.measure_names()
    shapes, fsdp_shapes = (
        {
            name: tuple(tensor.shape)
            for name, tensor in run.load_checkpoint().tensors.items()
            if name.startswith("model.")
        }
        for run in (single, fsdp)
    )
    assert fsdp_shapes == shapes


def test_two_processes_killed_and_resumed_equal_undisturbed_ones(runs):
    assert any(kind == "restart" for _, kind, _, _ in runs["resumed"].events())
    assert read_run_contents(runs["resumed"].path) == read_run_contents(runs["undisturbed"].path)


def list_workers(agent_pid: int) -> list[int]:
    """Process ids of the workers that a torchrun agent has started."""
    return [
        int(pid) for pid in Path(f"/proc/{agent_pid}/task/{agent_pid}/children").read_text().split()
    ]


def wait_for_checkpoint(folder: Path, step: int, child: subprocess.Popen) -> Path:
    """Wait until the run has a checkpoint of that step or later; the run folder."""
    for _ in range(2400):
        for path in (folder / "runs").glob("[!.]*/checkpoints/*.json"):
            if int(re.findall(r"\d+", path.name)[0]) >= step:
                return path.parents[1]
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


def wait_for_restart(agent_pid: int, dead: list[int]) -> list[int]:
    """Wait until torchrun has replaced all workers; the new process ids."""
    for _ in range(2400):
        workers = list_workers(agent_pid)
        if len(workers) == len(dead) and not {*workers} & {*dead}:
            return workers
        time.sleep(0.05)
    raise AssertionError("torchrun did not restart the workers")


def test_after_a_worker_is_killed_torchrun_restarts_all_and_they_resume(runs, tmp_path):
    """Kills the first worker while training, then the second while all are restarting."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "--max-restarts=2",
        "-m",
        "neural",
        "train",
        str(write_experiment(tmp_path, **LONGER)),
        "--runs",
        str(tmp_path / "runs"),
    ]
    pipe, environment = subprocess.PIPE, {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment
    )
    try:
        path = wait_for_checkpoint(tmp_path, 10, child)
        workers = list_workers(child.pid)
        os.kill(workers[0], signal.SIGKILL)
        os.kill(wait_for_restart(child.pid, workers)[1], signal.SIGKILL)
        out, err = child.communicate(timeout=400)
    finally:
        child.kill()
    assert child.returncode == 0, out + err
    assert any(kind == "restart" for _, kind, _, _ in Run.open(path).events())
    assert read_run_contents(path) == read_run_contents(runs["undisturbed"].path)

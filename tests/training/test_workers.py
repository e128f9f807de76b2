"""Several processes train one network: the same losses, and a dead one does not end it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neural.core.settings import resolved
from neural.tracking.run import Run
from tests.training.programs import experiment, trace

ROOT = Path(__file__).parents[2]


def file_of(folder: Path, **settings) -> Path:
    """The experiment as a file."""
    folder.mkdir(exist_ok=True)
    path = folder / "small.yaml"
    path.write_text(json.dumps(resolved(experiment(folder, **settings))))   # JSON is YAML
    return path


LONGER = {"steps": 120, "checkpoint_every": 5, "validate_every": 50, "gradient_accumulation_steps": 2}
CASES = {
    "alone": (1, None, {"gradient_accumulation_steps": 2}),
    "together": (2, None, {"gradient_accumulation_steps": 1}),
    "split": (2, None, {"gradient_accumulation_steps": 1, "shard": True, "ema": 0.5}),
    "straight": (2, None, LONGER),
    "resumed": (2, 40, LONGER),
}
"""How many processes, the step at which they are killed, and what is trained."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The finished runs of all cases, started by one process: each would import torch for longer than it trains."""
    folder = tmp_path_factory.mktemp("together")
    cases = {name: (count, str(file_of(folder / f"{name}-file", **settings)), killed_at)
             for name, (count, killed_at, settings) in CASES.items()}  # fmt: skip
    command = [sys.executable, "-m", "tests.training.together", str(folder), json.dumps(cases)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: Run.open(next((folder / name / "runs").glob("[!.]*"))) for name in CASES}


def losses(run: Run, name: str = "train/loss") -> list[float]:
    return run.scalars(name)[1].tolist()


def test_two_processes_learn_what_one_does_with_twice_the_batches(runs):
    alone, together = runs["alone"], runs["together"]
    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert losses(together, "valid/loss") == pytest.approx(losses(alone, "valid/loss"), abs=1e-5)
    assert together.measures() == alone.measures()


def test_split_among_two_processes_it_is_the_same_too(runs):
    alone, split = runs["alone"], runs["split"]
    assert losses(split) == pytest.approx(losses(alone), abs=1e-5)
    assert split.measures() == alone.measures()
    one, other = ({name: tuple(tensor.shape) for name, tensor in run.restore().tensors.items() if name[:6] == "model."}
                  for run in (alone, split))  # fmt: skip
    assert one == other


def test_two_processes_killed_and_resumed_are_the_same_as_never_killed(runs):
    assert any(kind == "restart" for _, kind, _, _ in runs["resumed"].events())
    assert trace(runs["resumed"].path) == trace(runs["straight"].path)


def workers_of(agent: int) -> list[int]:
    """The processes that an agent of torchrun has started."""
    return [int(one) for one in Path(f"/proc/{agent}/task/{agent}/children").read_text().split()]


def wait_for(folder: Path, step: int, child: subprocess.Popen) -> Path:
    """Until the run has a checkpoint from that step on."""
    for _ in range(2400):
        for path in (folder / "runs").glob("[!.]*/checkpoints/*.json"):
            if int(re.findall(r"\d+", path.name)[0]) >= step:
                return path.parents[1]
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


def replaced(agent: int, dead: list[int]) -> list[int]:
    """The processes that torchrun starts in place of others."""
    for _ in range(2400):
        found = workers_of(agent)
        if len(found) == len(dead) and not {*found} & {*dead}:
            return found
        time.sleep(0.05)
    raise AssertionError("torchrun started no others")


def test_after_workers_are_killed_torchrun_starts_all_and_they_go_on_from_the_checkpoint(runs, tmp_path):
    """The first while training, and then the other while all are starting again."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=2",
               "-m", "neural", "train", str(file_of(tmp_path, **LONGER)), "--runs", str(tmp_path / "runs")]  # fmt: skip
    pipe, environment = subprocess.PIPE, {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment)
    try:
        path = wait_for(tmp_path, 10, child)
        workers = workers_of(child.pid)
        os.kill(workers[0], signal.SIGKILL)
        os.kill(replaced(child.pid, workers)[1], signal.SIGKILL)
        out, err = child.communicate(timeout=400)
    finally:
        child.kill()
    assert child.returncode == 0, out + err
    assert any(kind == "restart" for _, kind, _, _ in Run.open(path).events())
    assert trace(path) == trace(runs["straight"].path)

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


def started(file: Path, processes: int, *more: str) -> subprocess.Popen:
    """`neural train`, by torchrun where there are several processes."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}",
           "--max-restarts=2", "-m", "neural"]  # fmt: skip
    command = run if processes > 1 else [sys.executable, "-m", "neural"]
    command += ["train", *([str(file)] if "--resume" not in more else []), "--runs", str(file.parent / "runs"), *more]
    return subprocess.Popen(
        [*command, "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def trained(folder: Path, processes: int, *more: str, **settings) -> Run:
    """A finished run."""
    child = started(file_of(folder, **settings), processes, *more)
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, out + err
    (path,) = (folder / "runs").glob("[!.]*")
    return Run.open(path)


def losses(run: Run, name: str = "train/loss") -> list[float]:
    return run.scalars(name)[1].tolist()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process with twice as many batches per step."""
    return trained(tmp_path_factory.mktemp("alone"), 1, gradient_accumulation_steps=2)


def test_two_processes_learn_what_one_does_with_twice_the_batches(alone, tmp_path):
    together = trained(tmp_path, 2, gradient_accumulation_steps=1)
    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert losses(together, "valid/loss") == pytest.approx(losses(alone, "valid/loss"), abs=1e-5)
    assert together.measures() == alone.measures()


def test_split_among_two_processes_it_is_the_same_too(alone, tmp_path):
    together = trained(tmp_path, 2, gradient_accumulation_steps=1, shard=True, ema=0.5)
    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert together.measures() == alone.measures()
    shapes = {name: tuple(one.shape) for name, one in together.restore().tensors.items() if name.startswith("model.")}
    assert shapes == {
        name: tuple(one.shape) for name, one in alone.restore().tensors.items() if name.startswith("model.")
    }


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


LONGER = {"steps": 120, "checkpoint_every": 5, "validate_every": 50, "gradient_accumulation_steps": 2}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Two processes that nobody killed."""
    return trace(trained(tmp_path_factory.mktemp("straight"), 2, **LONGER).path)


def replaced(agent: int, dead: list[int]) -> list[int]:
    """The processes that torchrun starts in place of others."""
    for _ in range(2400):
        found = workers_of(agent)
        if len(found) == len(dead) and not {*found} & {*dead}:
            return found
        time.sleep(0.05)
    raise AssertionError("torchrun started no others")


def test_after_workers_are_killed_all_go_on_from_the_checkpoint(straight, tmp_path):
    """The first while training, and then the other while all are starting again."""
    child = started(file_of(tmp_path, **LONGER), 2)
    try:
        path = wait_for(tmp_path, 10, child)
        workers = workers_of(child.pid)
        os.kill(workers[0], signal.SIGKILL)
        os.kill(replaced(child.pid, workers)[1], signal.SIGKILL)
        out, err = child.communicate(timeout=240)
    finally:
        child.kill()
    assert child.returncode == 0, out + err
    assert any(kind == "restart" for _, kind, _, _ in Run.open(path).events())
    assert trace(path) == straight


def test_two_processes_killed_and_resumed_are_the_same_as_never_killed(straight, tmp_path):
    file = file_of(tmp_path, **LONGER)
    child = started(file, 2)
    path = wait_for(tmp_path, 40, child)
    for one in [child.pid, *workers_of(child.pid)]:
        os.kill(one, signal.SIGKILL)
    child.communicate()
    child = started(file, 2, "--resume", str(path))
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, out + err
    assert trace(path) == straight

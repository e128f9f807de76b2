"""`neural sweep --runner ray` on a real cluster of two nodes; a worker is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neural.runs.run import Run
from tests.cli.test_sweep import TIMEOUT_SECONDS, find_saved_run, interrupt, wait_for
from tests.sweeps import write_sweep

SWEEP = """experiment: tiny.neural
seeds: [0, 1]
grid: {training.learning_rate: [1e-3, 3e-3]}
set:
  - training.steps=30
  - training.checkpoint_every=1
  - training.keep_checkpoints=1
  - tracking.track_every=0
retries: 2
"""


@pytest.fixture
def cluster():
    """Address of a cluster whose nodes are other processes."""
    command = [sys.executable, str(Path(__file__).with_name("ray_cluster.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as nodes:
        address = nodes.stdout.readline().strip()
        assert address, "the cluster did not start"
        yield address
        nodes.stdin.close()
        nodes.wait(TIMEOUT_SECONDS)


def get_parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_all_trials_finish_although_a_worker_is_killed(
    start_neural, tmp_path, monkeypatch, cluster
):
    write_sweep(tmp_path, SWEEP)
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    with start_neural(tmp_path, "sweep", "rates.yaml", "--runner", "ray", "--json") as sweep:
        path = wait_for(lambda: find_saved_run(tmp_path), sweep)
        trainer = Run.open(path).status.pid
        worker = get_parent(trainer)
        for pid in (worker, trainer):  # as if the machine failed
            os.kill(pid, signal.SIGKILL)
        stdout, stderr = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert sweep.returncode == 0, stderr
    data = json.loads(stdout)
    assert [row["state"] for row in data["ranked"]] == ["finished"] * 4
    killed = next(row for row in data["ranked"] if row["run"] == path.name)
    assert killed["attempts"] == 2
    assert f"failed    {killed['trial']['name']}  attempt 1: the worker died" in stderr
    run = Run.open(path)
    assert len(run.scalars("train/loss")[0]) == run.status.step == 30
    assert [kind for _, kind, _, _ in run.events()] == ["restart"]
    assert [point["seeds"] for point in data["points"]] == [2, 2]


def test_an_interrupted_sweep_is_stopped_on_the_cluster_too(start_neural, tmp_path, monkeypatch):
    """On a local cluster that the sweep starts and stops itself."""
    write_sweep(
        tmp_path,
        "experiment: tiny.neural\nset: [training.steps=100000, training.checkpoint_every=1]\n",
    )
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with start_neural(
        tmp_path, "sweep", "rates.yaml", "--runner", "ray", "--workers", "1"
    ) as sweep:
        path = wait_for(lambda: find_saved_run(tmp_path), sweep)
        interrupt(sweep)
        stdout, stderr = sweep.communicate(timeout=TIMEOUT_SECONDS)
    assert sweep.returncode == 130, stderr
    assert "neural sweep --resume" in stdout
    end = time.monotonic() + TIMEOUT_SECONDS
    while Run.open(path).status.state == "running" and time.monotonic() < end:
        time.sleep(0.1)
    assert Run.open(path).status.state == "stopped"

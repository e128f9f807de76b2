"""A process of a sweep is killed: it is restarted and resumes its run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.faults.survival._bench import Bench, SurvivalResult, wait_until
from tests.sweeps import write_sweep

SWEEP = "experiment: tiny.neural\nseeds: [0, 1]\nretries: 1\nset: [training.steps=80, training.checkpoint_every=4]\n"


def survive(bench: Bench) -> SurvivalResult:
    """Kill the first of two trials after its first checkpoint."""
    folder = bench.create_folder("sweep")
    file = write_sweep(folder, SWEEP)
    runs, pipe = folder / "runs", subprocess.PIPE
    command = [
        sys.executable,
        "-m",
        "neural",
        "sweep",
        str(file),
        "--runs",
        str(runs),
        "--workers",
        "1",
        "--json",
    ]
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        wait_until(
            lambda: any(runs.glob("*/*/checkpoints/*.json")) or child.poll() is not None,
            "a checkpoint",
        )
        workers = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        os.kill(int(workers[0]), signal.SIGKILL)
        out, err = child.communicate(timeout=300)
    finally:
        child.kill()
    bench.expect(
        child.returncode == 0, f"a trial's process was killed: {child.returncode}, {err[-1500:]}"
    )
    bench.expect_message(out + err)
    attempts = (
        [row["attempts"] for row in json.loads(out)["ranked"]] if child.returncode == 0 else []
    )
    bench.expect(
        sorted(attempts) == [1, 2], f"two trials, one killed, were attempted {attempts} times"
    )
    lines = [line for line in err.splitlines() if "SIGKILL" in line]
    return SurvivalResult(
        rounds=1,
        checked="the killed trial is restarted and resumes its run; all trials finish",
        lost="what came after its checkpoint",
        message=lines[-1].strip() if lines else "nothing",
    )

"""The short part of survive.py: every fault once, and no promise is broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faults.survive import FAULTS

SCRIPT = Path(__file__).parent / "survive.py"
SHORT = [one for one in FAULTS if one != "dead_worker"]
"""A process of a sweep is killed in tests/cli/test_sweep.py already."""


def survived(*words: str) -> subprocess.CompletedProcess[str]:
    command, environment = [sys.executable, str(SCRIPT), *words], {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=environment)


def test_a_training_survives_every_fault():
    """One process for all of them, since torch is imported once."""
    done = survived("--rounds", "1", "--seed", "1", "--json", "--only", ",".join(SHORT))
    assert done.stdout, done.stderr
    rows = {row["fault"]: row for row in json.loads(done.stdout)}
    assert sorted(rows) == sorted(one.replace("_", " ") for one in SHORT)
    assert all(row["rounds"] > 0 for row in rows.values())
    assert {fault: row["broken"] for fault, row in rows.items() if row["broken"]} == {}


def test_no_such_fault_is_said():
    done = survived("--only", "killed,melted")
    assert done.returncode == 2
    assert "no such fault: melted" in done.stderr

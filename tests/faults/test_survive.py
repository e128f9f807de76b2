"""A short run of survive.py: every fault once, and no check fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faults.survive import FAULTS

SCRIPT = Path(__file__).parent / "survive.py"
TESTED_ELSEWHERE = {"dead_worker", "every_operation"}
"""tests/cli/test_sweep.py kills a process of a sweep; test_broken_runs.py and test_broken_copies.py
break operations."""
SHORT_FAULTS = [fault for fault in FAULTS if fault not in TESTED_ELSEWHERE]


def run_script(*words: str) -> subprocess.CompletedProcess[str]:
    command, environment = (
        [sys.executable, str(SCRIPT), *words],
        {**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return subprocess.run(
        command, capture_output=True, text=True, timeout=500, check=False, env=environment
    )


def test_a_training_survives_every_fault():
    """One process for all faults, so that torch is imported once."""
    completed = run_script(
        "--rounds", "1", "--seed", "1", "--json", "--only", ",".join(SHORT_FAULTS)
    )
    assert completed.stdout, completed.stderr
    rows = {row["fault"]: row for row in json.loads(completed.stdout)}
    assert sorted(rows) == sorted(fault.replace("_", " ") for fault in SHORT_FAULTS)
    assert all(row["rounds"] > 0 for row in rows.values())
    assert {fault: row["failures"] for fault, row in rows.items() if row["failures"]} == {}


def test_an_unknown_fault_is_refused():
    completed = run_script("--only", "killed,melted")
    assert completed.returncode == 2
    assert "no such fault: melted" in completed.stderr

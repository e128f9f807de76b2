"""Every file operation of a small run, and of its copies, breaks once: broken_runs, broken_copies."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.faults.breaker import HERE
from tests.faults.survival._bench import Bench, SurvivalResult

MODES = {
    "broken_runs": ("kill", "half", "full", "fail", "once"),
    "broken_copies": ("kill", "half", "full"),
}
"""Modes of break_files.c, by script."""
DESCRIPTIONS = {
    "kill": "killed before one",
    "half": "killed in a write",
    "full": "disk full from one on",
    "fail": "disk failing from one on",
    "once": "one that fails once",
}
NOUNS = {
    "broken_runs": "a run that is written",
    "broken_copies": "a new copy, one that is replaced, and a conversion of version 2",
}


def survive(bench: Bench) -> SurvivalResult:
    """Break all operations, whatever the number of rounds: none of them is random."""
    tried, texts = 0, []
    for script, modes in MODES.items():
        counts = []
        for mode in modes:
            folder = bench.create_folder("operations")
            command = [sys.executable, str(HERE / f"{script}.py"), str(folder), mode, "1"]
            # the environment has LD_PRELOAD already
            completed = subprocess.run(command, capture_output=True, text=True, check=False)
            if not bench.expect(completed.returncode == 0, completed.stderr[-1500:]):
                continue
            report = json.loads(completed.stdout)
            for failure in report["failures"]:
                bench.expect(False, f"{script}, {mode}: {failure[-900:]}")
            tried += report["tried"]
            counts.append(f"{report['tried']} {DESCRIPTIONS[mode]}")
        texts.append(f"{NOUNS[script]}: {', '.join(counts)}")
    return SurvivalResult(
        rounds=tried,
        checked=f"{'; '.join(texts)}. A run has whole transactions, a complete checkpoint and resumes; a copy is "
        "absent, the old one or the new one, and can be made again",
        lost="what came after the last checkpoint; a copy that is under way",
        message="the disk is full; free some space …; the disk reports an error; what was saved before is kept",
    )

"""Start-up of commands with two versions of this package, in turns.

    python benchmarks/compare_startup.py OLD [--rounds 9] [--json]

OLD is the folder `src` of another checkout; what it needs must be installed here, and its native
library must be built (src/neural/native/cmake/CMakeLists.txt says how). Every command is a new
process; both versions read the same files and take turns. The figures are medians over rounds: wall
time and CPU time (user and system) of the new version, and new / old for both. CPU time is the
steadier of the two on a machine that is busy. The first round does not count: it compiles bytecode.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRAIN_ONE_STEP = ["--set", "training.steps=1", "--quiet", "--runs"]
"""The folder of runs follows."""
COMMANDS = {
    "neural --help": ["--help"],
    "neural check": ["check", "examples/tiny.neural"],
    "neural figure --help": ["figure", "--help"],
    "neural segment README.md": ["segment", "README.md"],
    "neural train, one step, digits": ["train", "examples/digits.neural", *TRAIN_ONE_STEP],
    "neural train, one step, text": ["train", "examples/language_model/tiny.yaml", *TRAIN_ONE_STEP],
}


def time_command(source: Path, words: list[str]) -> tuple[float, float]:
    """Wall seconds and CPU seconds of a command with the package in `source`."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
    with tempfile.TemporaryDirectory() as runs:
        words = [*words, runs] if words[-1] == "--runs" else words
        before, start_time = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "neural", *words],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env=environment,
        )
        wall_seconds = time.perf_counter() - start_time
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_seconds, cpu_seconds


def compare(old: Path, new: Path, words: list[str], rounds: int) -> dict[str, float]:
    """Medians over rounds, after one that is not counted."""
    times: dict[Path, list[tuple[float, float]]] = {old: [], new: []}
    for turn in range(rounds + 1):
        for source in (old, new) if turn % 2 else (new, old):
            times[source].append(time_command(source, words))
    (old_wall, old_cpu), (new_wall, new_cpu) = (
        [statistics.median(column) for column in zip(*times[source][1:], strict=True)]
        for source in (old, new)
    )
    return {
        "wall seconds": new_wall,
        "CPU seconds": new_cpu,
        "wall, new / old": new_wall / old_wall,
        "CPU, new / old": new_cpu / old_cpu,
    }


def main() -> None:
    """Print a row per command, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="folder `src` of the other version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    for name, words in COMMANDS.items():
        results[name] = compare(options.old.absolute(), ROOT / "src", words, options.rounds)
        if not options.json:
            cells = [f"{title} {value:6.3f}" for title, value in results[name].items()]
            print(f"{name:32} {'   '.join(cells)}", flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

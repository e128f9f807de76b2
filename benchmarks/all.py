"""Every benchmark of this folder, one table: what was measured, the goal, whether it was met.

    python benchmarks/all.py [--quick] [--only NAME …] [--json]

Each file runs in a process of its own, one after the other; a full round takes about an hour. What needs a peer or data
that are not here says so and the others go on: NEURAL_PEER is a checkout of nanoGPT, NEURAL_DATA the folder of corpora.
The exit code is 1 if a benchmark is broken, 0 if goals were missed: those are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NO_FIGURES_OF_THEIR_OWN = {"all", "chunkers", "pages", "segmentation_models"}
"""What others run or import."""
AT_LEAST = {
    "loops / ours", "MB per second", "size, BertViz / ours, n = 256", "ours / nanoGPT, one text", "ours, tokens/s",
    "two layers, written out / ours", "steps per second, 50 clients / none", "MB per second of CPU",
}  # fmt: skip
"""Goals from below; of all others, less is better."""
PEERED = {"language_model", "generation"}
Row = tuple[str, float, float]


def names() -> list[str]:
    """Of the benchmarks, as they are typed."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NO_FIGURES_OF_THEIR_OWN)


def measured(name: str, quick: bool) -> tuple[Any, str, bool]:
    """What a benchmark found, or why it did not, and whether that is a fault of its own."""
    peer = os.environ.get("NEURAL_PEER")
    more = ["--quick"] * quick + (["--peer", peer] if peer and name in PEERED else [])
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout), "", False
    except ValueError:
        last = ([*filter(str.strip, done.stderr.splitlines()), f"exit code {done.returncode}"][-2:])[0]
        return {}, last, "Traceback" in done.stderr


def rows(name: str, found: Any) -> Iterator[Row]:
    """Figures that have a goal, wherever they stand in what was found."""
    goals = found.get("goals", {})
    if "goal" in found and "ratio" in found:
        yield name, found["ratio"], found["goal"]
    yield from _inside(found, goals)


def _inside(found: dict[str, Any], goals: dict[str, float]) -> Iterator[Row]:
    for key, value in found.items():
        if key == "goals":
            continue
        if isinstance(value, dict):
            if value.get("goal") is not None and "seconds" in value:
                yield key, value["seconds"], value["goal"]
            yield from _inside(value, goals)
        elif key in goals and isinstance(value, int | float):
            yield key, value, goals[key]


def met(figure: str, value: float, goal: float) -> bool:
    """Whether a figure is as good as it was to be."""
    return value >= goal if figure in AT_LEAST else value <= goal


def main() -> int:
    """Print a line per figure as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--only", nargs="+", choices=names(), default=names(), metavar="NAME")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    everything = {}
    if not asked.json:
        print(f"{'benchmark':20} {'figure':46} {'measured':>10} {'goal':>10}")
    for name in asked.only:
        begun = time.monotonic()
        found, why, broken = measured(name, asked.quick)
        table = list(rows(name, found))
        everything[name] = {"figures": table, "seconds": time.monotonic() - begun, "trouble": why, "broken": broken}
        if asked.json:
            continue
        for figure, value, goal in table:
            sign = "≥" if figure in AT_LEAST else "≤"
            said = "" if met(figure, value, goal) or asked.quick else "   missed"   # small sizes have no goals
            print(f"{name:20} {figure:46} {value:10.4g} {sign + format(goal, '.4g'):>10}{said}", flush=True)
        if not table:
            print(f"{name:20} {why or f'no goals: neural bench {name} has its table'}", flush=True)
    if asked.json:
        print(json.dumps(everything, indent=1))
    return int(any(one["broken"] for one in everything.values()))


if __name__ == "__main__":
    sys.exit(main())

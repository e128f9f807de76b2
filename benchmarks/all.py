"""Run every benchmark of this folder and print one table: figure, measured value, goal.

    python benchmarks/all.py [--quick] [--only NAME …] [--json]

Each benchmark runs in its own process, one after the other; all of them take about an hour. One
that needs a missing peer or missing data says so, and the others continue: NEURAL_PEER is a
checkout of nanoGPT, NEURAL_DATA the folder of corpora. The exit code is 1 if a benchmark failed, 0
if goals were missed: those are printed.
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
HELPER_MODULES = {
    "importance_statistics",
    "all",
    "authors_headings",
    "chunkers",
    "compare_sources",
    "compare_startup",
    "pages",
    "segmentation_models",
}
"""Files that other benchmarks run or import, or that need another checkout."""
STUDIES = {"causal_claims", "misleading_layout", "sentence_splitting"}
"""Files without goals, whose tables are in docs: they train for an hour or need other data."""
AT_LEAST = {
    "loops / ours",
    "MB per second",
    "size, BertViz / ours, n = 256",
    "ours / nanoGPT, one text",
    "ours, float32 / nanoGPT, one text",
    "ours / nanoGPT, 16 texts",
    "two layers, dense / ours",
    "steps per second, 50 clients / none",
    "MB per second of CPU",
    "seeds whose role agrees",
    "seeds whose half importance agrees",
}
"""Figures whose goal is a minimum; for all others it is a maximum."""
NANOGPT_BENCHMARKS = {"language_model", "generation"}
Row = tuple[str, float, float]


def names() -> list[str]:
    """Names of the benchmarks."""
    left_out = HELPER_MODULES | STUDIES
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in left_out)


def run_benchmark(name: str, quick: bool) -> tuple[Any, str, bool]:
    """The JSON of a benchmark, the reason if there is none, and whether it failed."""
    peer = os.environ.get("NEURAL_PEER")
    options = ["--quick"] * quick
    options += ["--peer", peer] if peer and name in NANOGPT_BENCHMARKS else []
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout), "", False
    except ValueError:
        lines = [*filter(str.strip, done.stderr.splitlines()), f"exit code {done.returncode}"]
        return {}, lines[-2:][0], "Traceback" in done.stderr


def rows(name: str, results: Any) -> Iterator[Row]:
    """Figures that have a goal, at any depth of the JSON."""
    goals = results.get("goals", {})
    if "goal" in results and "ratio" in results:
        yield name, results["ratio"], results["goal"]
    yield from _nested_rows(results, goals)


def _nested_rows(results: dict[str, Any], goals: dict[str, float]) -> Iterator[Row]:
    for key, value in results.items():
        if key == "goals":
            continue
        if isinstance(value, dict):
            if value.get("goal") is not None and "seconds" in value:
                yield key, value["seconds"], value["goal"]
            yield from _nested_rows(value, goals)
        elif key in goals and isinstance(value, int | float):
            yield key, value, goals[key]


def met(figure: str, value: float, goal: float) -> bool:
    """Whether a figure meets its goal."""
    return value >= goal if figure in AT_LEAST else value <= goal


def main() -> int:
    """Print a line per figure as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--only", nargs="+", choices=names(), default=names(), metavar="NAME")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    everything = {}
    if not options.json:
        print(f"{'benchmark':20} {'figure':46} {'measured':>10} {'goal':>10}")
    for name in options.only:
        start = time.monotonic()
        results, reason, failed = run_benchmark(name, options.quick)
        table = list(rows(name, results))
        everything[name] = {
            "figures": table,
            "seconds": time.monotonic() - start,
            "error": reason,
            "failed": failed,
        }
        if options.json:
            continue
        for figure, value, goal in table:
            sign = "≥" if figure in AT_LEAST else "≤"
            # goals do not apply to the small sizes of --quick
            note = "" if met(figure, value, goal) or options.quick else "   missed"
            print(
                f"{name:20} {figure:46} {value:10.4g} {sign + format(goal, '.4g'):>10}{note}",
                flush=True,
            )
        if not table:
            print(
                f"{name:20} {reason or f'no goals: python benchmarks/{name}.py has its table'}",
                flush=True,
            )
    if options.json:
        print(json.dumps(everything, indent=1))
    return int(any(result["failed"] for result in everything.values()))


if __name__ == "__main__":
    sys.exit(main())

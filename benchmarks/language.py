"""Response time of the command line, beside an empty Python process and an import of torch.

    python benchmarks/language.py [--json] [--quick]

Every command is a fresh process; commands alternate, and the figure is the median over rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMPORT_TORCH = 'python -c "import torch"'
EXAMPLES = sorted(str(path) for path in (ROOT / "examples").glob("*.neural"))
GOALS = {
    "neural --help": 0.3,
    "neural check examples/*.neural": 0.5,
    "neural check, 2,000 layers": 1.0,
}


def long_program(layers: int) -> str:
    """A program of many layers, written line by line."""
    lines = [f'    Dense({64 + index % 7}, activation="relu")' for index in range(layers - 1)]
    return "\n".join(
        ["network Long {", "  input: (32, 64)", "  layers:", *lines, "    Dense(10)", "}", ""]
    )


def commands(folder: Path) -> dict[str, list[str]]:
    """Commands to time, by the name of the figure."""
    program = folder / "long.neural"
    program.write_text(long_program(2000), encoding="utf-8")
    neural = [sys.executable, "-m", "neural"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "neural --help": [*neural, "--help"],
        "neural check examples/*.neural": [*neural, "check", *EXAMPLES],
        "neural check, 2,000 layers": [*neural, "check", str(program)],
        IMPORT_TORCH: [sys.executable, "-c", "import torch"],
    }


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of each command."""
    with tempfile.TemporaryDirectory() as folder:
        timed = commands(Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(rounds):
            for name, command in timed.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def run_and_print(
    description: str, measure: Callable[[int], dict[str, float]], goals: dict[str, float]
) -> None:
    """Measure and print a table or JSON; also used by editors.py."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one round")
    options = parser.parse_args()
    seconds = measure(1 if options.quick else 9)
    if options.json:
        rows = {
            name: {"seconds": value, "goal": goals.get(name)} for name, value in seconds.items()
        }
        print(json.dumps(rows, indent=2))
        return
    print(f"{'command':32} {'seconds':>8} {'goal':>6} {'of torch':>9}")
    for name, value in seconds.items():
        goal = f"{goals[name]:.1f}" if name in goals else ""
        print(f"{name:32} {value:8.3f} {goal:>6} {value / seconds[IMPORT_TORCH]:9.3f}")


if __name__ == "__main__":
    run_and_print(__doc__, measure, GOALS)

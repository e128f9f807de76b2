"""How long the command line takes to answer, next to an empty Python and to importing torch.

    python benchmarks/language.py [--json] [--quick]

Every command is a fresh process; the figure is the median over rounds in which all commands take turns.
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
TORCH = 'python -c "import torch"'
EXAMPLES = sorted(str(path) for path in (ROOT / "examples").glob("*.neural"))
GOALS = {"neural --help": 0.3, "neural check examples/*.neural": 0.5, "neural check, 2,000 layers": 1.0}


def long_program(layers: int) -> str:
    """A program with many layers written out, no two lines alike."""
    lines = [f"    Dense({64 + index % 7}, activation=\"relu\")" for index in range(layers - 1)]
    return "\n".join(["network Long {", "  input: (32, 64)", "  layers:", *lines, "    Dense(10)", "}", ""])


def commands(folder: Path) -> dict[str, list[str]]:
    """What is timed, by the name it is shown under."""
    program = folder / "long.neural"
    program.write_text(long_program(2000), encoding="utf-8")
    neural = [sys.executable, "-m", "neural"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "neural --help": [*neural, "--help"],
        "neural check examples/*.neural": [*neural, "check", *EXAMPLES],
        "neural check, 2,000 layers": [*neural, "check", str(program)],
        TORCH: [sys.executable, "-c", "import torch"],
    }


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of each command."""
    with tempfile.TemporaryDirectory() as folder:
        todo = commands(Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in todo}
        for _ in range(rounds):
            for name, command in todo.items():
                started = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


def show(about: str, measured: Callable[[int], dict[str, float]], goals: dict[str, float]) -> None:
    """Measure, and print a table or JSON; also for other benchmarks of waiting."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one round only")
    options = parser.parse_args()
    found = measured(1 if options.quick else 9)
    if options.json:
        rows = {name: {"seconds": value, "goal": goals.get(name)} for name, value in found.items()}
        print(json.dumps(rows, indent=2))
        return
    print(f"{'what is waited for':32} {'seconds':>8} {'goal':>6} {'of torch':>9}")
    for name, value in found.items():
        goal = f"{goals[name]:.1f}" if name in goals else ""
        print(f"{name:32} {value:8.3f} {goal:>6} {value / found[TORCH]:9.3f}")


if __name__ == "__main__":
    show(__doc__, measure, GOALS)

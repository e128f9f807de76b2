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
from pathlib import Path

ROOT = Path(__file__).parent.parent
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
        'python -c "import torch"': [sys.executable, "-c", "import torch"],
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


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="two rounds only")
    options = parser.parse_args()
    found = measure(2 if options.quick else 9)
    if options.json:
        rows = {name: {"seconds": value, "goal": GOALS.get(name)} for name, value in found.items()}
        print(json.dumps(rows, indent=2))
        return
    bare, torch = found["python -c pass"], found['python -c "import torch"']
    print(f"{'command':32} {'seconds':>8} {'goal':>6} {'× python':>9} {'of torch':>9}")
    for name, value in found.items():
        goal = f"{GOALS[name]:.1f}" if name in GOALS else ""
        print(f"{name:32} {value:8.3f} {goal:>6} {value / bare:9.1f} {value / torch:9.2f}")


if __name__ == "__main__":
    main()

"""First use: seconds until the first training step, the first generated token, the first segments.

    python benchmarks/first_use.py [--json] [--quick]

Every command is a new process whose home, cache and temporary folders are empty, as after the
installation; only Python's bytecode is there, which pip compiles. Commands alternate, and figures
are medians over rounds.

- train: `neural train examples/language_model/tiny.yaml` until the first step is logged, beside a
  process that only imports torch. The goal is that process plus three later steps.
- generate: seconds from the end of loading the run to the first printed character.
- segment: `neural segment README.md` in all; torch need not be imported for it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
STEPS = 20
PROMPT = "The "
LATER_STEPS_ALLOWED = 3
GOALS = {"first token after loading": 0.2, "neural segment README.md": 0.8}

TRAIN_SCRIPT = """
import sys, time
from neural.runs.run import Run
from neural.cli.main import main

log = Run.log

def log_with_time(self, step, *args, **kwargs):
    log(self, step, *args, **kwargs)
    print("logged", step, time.monotonic(), file=sys.stderr)

Run.log = log_with_time
main(["train", *sys.argv[1:]])
"""
"""`neural train` that also prints the time of every logged row."""

GENERATE_SCRIPT = """
import sys, time
from neural.cli.main import main
from neural.workflows import generate

load_generator = generate.load_generator

def load_with_time(*args):
    generator = load_generator(*args)
    print("loaded", time.monotonic(), file=sys.stderr)
    return generator

generate.load_generator = load_with_time
main(["generate", *sys.argv[1:]])
"""
"""`neural generate` that also prints when the run is loaded."""


def empty_environment(folder: Path) -> dict[str, str]:
    """The environment of this process with empty home, cache and temporary folders."""
    home = Path(tempfile.mkdtemp(dir=folder))
    names = {
        "HOME": "home",
        "XDG_CACHE_HOME": "cache",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "NUMBA_CACHE_DIR": "numba",
        "MPLCONFIGDIR": "matplotlib",
        "TMPDIR": "tmp",
    }
    for name in names.values():
        (home / name).mkdir()
    return {**os.environ, **{key: str(home / name) for key, name in names.items()}}


def time_train(folder: Path, runs: Path) -> dict[str, float]:
    """Seconds from the start of the process to the first logged step, and of a later step."""
    arguments = ["examples/language_model/tiny.yaml", "--set", f"training.steps={STEPS}"]
    start_time = time.monotonic()
    process = subprocess.run(
        [sys.executable, "-c", TRAIN_SCRIPT, *arguments, "--runs", str(runs)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=empty_environment(folder),
    )
    rows = [line.split() for line in process.stderr.splitlines() if line.startswith("logged ")]
    times = {int(step): float(seconds) for _, step, seconds in reversed(rows)}  # of the first row
    later_steps = [times[step] - times[step - 1] for step in range(3, STEPS)]
    return {
        "first logged step": times[1] - start_time,
        "a later step": statistics.median(later_steps),
    }


def time_generate(folder: Path, runs: Path) -> dict[str, float]:
    """Seconds until the run is loaded, and from then to the first character of the text."""
    start_time = time.monotonic()
    arguments = ["--prompt", PROMPT, "--tokens", "30", "--runs", str(runs)]
    process = subprocess.Popen(
        [sys.executable, "-c", GENERATE_SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=empty_environment(folder),
    )
    assert process.stdout is not None and process.stderr is not None
    text = b""
    while len(text) <= len(PROMPT):
        character = os.read(process.stdout.fileno(), 1)
        if not character:
            raise RuntimeError(process.stderr.read().decode())
        text += character
    first_token_time = time.monotonic()
    _, messages = process.communicate()
    loaded_line = next(
        line for line in messages.decode().splitlines() if line.startswith("loaded ")
    )
    loaded_time = float(loaded_line.split()[1])
    return {
        "generate: run loaded": loaded_time - start_time,
        "first token after loading": first_token_time - loaded_time,
    }


def time_command(folder: Path, command: list[str]) -> float:
    """Seconds of a whole process."""
    environment = empty_environment(folder)
    start_time = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    return time.monotonic() - start_time


def measure(rounds: int) -> dict[str, float]:
    """Medians over rounds, after one that is not counted."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import torch": [sys.executable, "-c", "import torch"],
        "neural segment README.md": [sys.executable, "-m", "neural", "segment", "README.md"],
    }
    results: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(rounds + 1):
            runs = folder / f"runs{number}"
            results.append(
                {
                    **{key: time_command(folder, command) for key, command in commands.items()},
                    **time_train(folder, runs),
                    **time_generate(folder, runs),
                }
            )
    return {key: statistics.median(result[key] for result in results[1:]) for key in results[0]}


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one round")
    options = parser.parse_args()
    seconds = measure(1 if options.quick else 7)
    first_step_goal = seconds["import torch"] + LATER_STEPS_ALLOWED * seconds["a later step"]
    goals = {**GOALS, "first logged step": first_step_goal}
    if options.json:
        rows = {
            name: {"seconds": value, "goal": goals.get(name)} for name, value in seconds.items()
        }
        print(json.dumps(rows, indent=2))
        return
    for name, value in seconds.items():
        goal = f"   goal {goals[name]:.3f}" if name in goals else ""
        print(f"{name:28} {value:7.3f} s{goal}")


if __name__ == "__main__":
    main()

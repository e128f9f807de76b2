"""Seconds of a training step of `modern` with two versions of this package, in turns.

    python benchmarks/compare_sources.py OLD [--batch 12] [--rounds 9] [--json]

OLD is the folder `src` of another checkout; what it needs must be installed here. Both versions
train the same network on the same text, each in a process of its own, and take turns: 40 steps of
one, 40 of the other. The figure is the median over rounds of old / new, where a round's value is the
median step. The first round does not count. Also prints the last losses of both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 40
"""Steps of one version before the other takes its turn."""
PRESET = "nanogpt_cpu"
"""nanoGPT's recipe for a CPU: 4 layers, 4 heads, width 128, context 64."""


class StopTraining(BaseException):
    """The other process has closed the pipe."""


def train(batch_size: int, steps: int) -> None:
    """Train; for each line on standard input, print the seconds and losses of some more steps."""
    from neural.tasks.language_model.task import LanguageModelSettings
    from neural.training.engine import fit
    from neural.training.load_task import create_task
    from neural.workflows.train import create_run

    folder = Path(tempfile.mkdtemp())
    settings = LanguageModelSettings.model_validate(
        {
            "data": "handbook",
            "preset": PRESET,
            "architecture": "modern",
            "training": {"steps": steps, "validate_every": steps, "batch_size": batch_size},
            "tracking": {"track_every": 0},
        }
    )
    task = create_task(settings, folder)
    seconds: list[float] = []
    losses: list[float] = []
    started = time.perf_counter()

    def on_step(progress) -> None:
        nonlocal started
        seconds.append(time.perf_counter() - started)
        losses.append(progress.loss)
        if len(seconds) == STEPS:
            print(json.dumps([seconds, losses]), flush=True)
            seconds.clear()
            losses.clear()
            if not sys.stdin.readline():
                raise StopTraining
        started = time.perf_counter()

    with contextlib.suppress(StopTraining):
        fit(task, create_run(task, folder), on_step=on_step)


def main() -> None:
    """Run both versions in turns and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="folder `src` of the other version")
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    steps = STEPS * (options.rounds + 2)
    if options.train:
        train(options.batch, steps)
        return
    new = Path(__file__).parents[1] / "src"
    command = [sys.executable, __file__, str(options.old), "--train"]
    command += ["--batch", str(options.batch), "--rounds", str(options.rounds)]
    other = os.environ.get("PYTHONPATH", "")
    processes = {
        name: subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(source), other)))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, source in (("old", options.old.absolute()), ("new", new))
    }
    medians: dict[str, list[float]] = {name: [] for name in processes}
    losses: dict[str, float] = {}
    for turn in range(options.rounds + 1):
        names = list(processes) if turn % 2 else list(processes)[::-1]
        for name in names:
            process = processes[name]
            assert process.stdin is not None
            assert process.stdout is not None
            if turn:  # the first steps run without being asked
                process.stdin.write("\n")
                process.stdin.flush()
            seconds, step_losses = json.loads(process.stdout.readline())
            losses[name] = step_losses[-1]
            if turn:
                medians[name].append(statistics.median(seconds))
    for process in processes.values():
        process.communicate()  # closes its standard input, which ends the training
    ratios = sorted(a / b for a, b in zip(medians["old"], medians["new"], strict=True))
    results = {
        "old, ms": 1000 * statistics.median(medians["old"]),
        "new, ms": 1000 * statistics.median(medians["new"]),
        "old / new": statistics.median(ratios),
        "smallest": ratios[0],
        "largest": ratios[-1],
        "last loss, old": losses["old"],
        "last loss, new": losses["new"],
    }
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for name, value in results.items():
            print(f"{name:16} {value:10.4g}")


if __name__ == "__main__":
    main()

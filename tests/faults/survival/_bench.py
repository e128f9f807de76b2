"""Test bench of the faults: a small training in a child process, and checks of its run."""

from __future__ import annotations

import random
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from neural.runs.run import Run
from tests.faults.breaker import Breaker
from tests.faults.survival._process import Action, Attempt, load
from tests.training.programs import read_run_contents

ROOT = Path(__file__).parents[3]
EXPERIMENT = ROOT / "examples" / "language_model" / "tiny.yaml"
CHECKPOINT_EVERY = 5
STEPS = 30
SMALL_SETTINGS = {
    "training.steps": STEPS,
    "training.checkpoint_every": CHECKPOINT_EVERY,
    "training.validate_every": 12,
    "training.batch_size": 4,
    "context": 32,
    "validation_windows": 8,
    "tracking.track_every": 6,
    "tracking.maps_every": 1,
    "tracking.probe_size": 1,
}
"""Overrides of the example, so that a hundred trainings take minutes."""


@dataclass(frozen=True, kw_only=True)
class SurvivalResult:
    """One line of the table."""

    rounds: int
    checked: str
    lost: str
    """The largest loss of work."""
    message: str
    """Message to the user."""
    method: str = ""
    """How the fault was caused, if there are several methods."""


class Bench:
    """A folder for experiments; failed checks are collected in `failures`."""

    def __init__(self, folder: Path, *, rounds: int, seed: int) -> None:
        self.folder, self.rounds, self.seed = folder, rounds, seed
        self.failures: list[str] = []
        self.rng = random.Random(seed)
        self.breaker = Breaker()
        self.expected_contents = read_run_contents(self.reference_run)
        """Contents of an undisturbed run, which all others must equal."""

    def expect(self, condition: object, failure: str) -> bool:
        """Record a failure unless the condition holds; returns the condition."""
        if not condition:
            self.failures.append(failure)
            print(f"FAILED {failure}", file=sys.stderr, flush=True)
        return bool(condition)

    def create_folder(self, name: str) -> Path:
        """Create an empty folder, replacing an old one."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def run_neural(self, *words: object, before: Action | None = None) -> Attempt:
        """Run `neural …` in a child process, which calls `before` first."""
        return Attempt([str(word) for word in words], self.folder, before)

    def train(
        self, runs: Path, *options: str, before: Action | None = None, **overrides: Any
    ) -> Attempt:
        """Start the training."""
        return self.run_neural(*training_command(runs, **overrides), *options, before=before)

    def resume(self, run: Path, *, before: Action | None = None) -> Attempt:
        """Resume the training from its last checkpoint."""
        return self.run_neural("train", "--resume", run, before=before)

    @cached_property
    def reference_run(self) -> Path:
        """Path of an undisturbed run. Afterwards this process has imported what its children need."""
        modules_file = self.folder / "modules.txt"
        if not modules_file.exists():
            load()
            command = training_command(self.create_folder("reference"))
            words = [str(word) for word in command]
            result = Attempt(words, self.folder, modules_file=modules_file).wait_for_end()
            assert result.code == 0, result.text
            load(modules_file)
        return self.find_only_run(self.folder / "reference")

    def find_only_run(self, runs: Path) -> Path:
        """Path of the only run in a folder."""
        (path,) = runs.glob("[!.]*")
        return path

    def expect_same(self, run: Path, after: str, *, ignore: str = "") -> None:
        """Expect a finished run that is bit-identical to an undisturbed one, except `ignore`."""
        expected, contents = self.expected_contents, read_run_contents(run)
        # a run killed between saving its last checkpoint and pruning has older ones too
        contents["checkpoints"] = [
            checkpoint
            for checkpoint in contents["checkpoints"]
            if checkpoint in expected["checkpoints"]
        ]
        different = [
            name for name in expected if name != ignore and contents[name] != expected[name]
        ]
        self.expect(
            not different,
            f"{after}: {', '.join(different)} are not those of an undisturbed run",
        )
        self.expect(Run.open(run).status.state == "finished", f"{after}: its state is not finished")

    def expect_message(self, text: str, *words: object) -> None:
        """Expect a message that contains these words, and no traceback."""
        self.expect("Traceback" not in text, f"a traceback instead of a message: {text[-2000:]}")
        for word in words:
            self.expect(str(word) in text, f"the message does not say {word}: {text[-600:]}")

    def extract_message(self, text: str, run: Path | None = None) -> str:
        """The last error line of an output, or its last line; without local paths and names."""
        lines = [line for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("error")]
        message = (errors or lines or ["nothing"])[-1].removeprefix("error: ")
        for path, name in [*([(run, "RUN")] if run else []), (self.folder, "…"), (ROOT, "…")]:
            message = message.replace(str(path), name)
        return message.replace(socket.gethostname(), "HOST")


def training_command(runs: Path, **overrides: Any) -> list[object]:
    """Arguments of `neural`; `training__steps=9` overrides `training.steps`."""
    pairs = {
        **SMALL_SETTINGS,
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    return [
        "train",
        EXPERIMENT,
        "--runs",
        runs,
        *(f"--set={key}={value}" for key, value in pairs.items()),
    ]


def wait_until(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    """Poll a condition every few milliseconds; TimeoutError after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.003)

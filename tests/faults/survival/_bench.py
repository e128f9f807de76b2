"""Where faults are tried: a small training as a process of its own, and what is expected of it."""

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

from neural.tracking.run import Run
from tests.faults.breaker import Breaker
from tests.faults.survival._process import Attempt, Does, load
from tests.training.programs import trace

ROOT = Path(__file__).parents[3]
EXPERIMENT = ROOT / "examples" / "language_model" / "tiny.yaml"
SAVED_EVERY = 5
STEPS = 30
SMALLER = {
    "training.steps": STEPS, "training.checkpoint_every": SAVED_EVERY, "training.validate_every": 12,
    "training.batch_size": 4, "context": 32, "validation_windows": 8, "tracking.track_every": 6,
    "tracking.maps_every": 1, "tracking.probe_size": 1,
}  # fmt: skip
"""What is changed of the example, so that a hundred trainings take minutes."""


@dataclass(frozen=True, kw_only=True)
class Survived:
    """One line of the table."""

    rounds: int
    checked: str
    lost: str
    """The worst that was lost."""
    said: str
    """What the user was told."""
    how: str = ""
    """How the fault was made, where there are several ways."""


class Bench:
    """A folder to break things in; what did not come out as it must is in `broken`."""

    def __init__(self, folder: Path, *, rounds: int, seed: int) -> None:
        self.folder, self.rounds, self.seed = folder, rounds, seed
        self.broken: list[str] = []
        self.chance = random.Random(seed)
        self.breaker = Breaker()
        self.wanted = trace(self.straight)
        """All that the others must have in common with a run that nothing happened to."""

    def expect(self, kept: object, otherwise: str) -> bool:
        """Note a promise that was not kept."""
        if not kept:
            self.broken.append(otherwise)
            print(f"BROKEN {otherwise}", file=sys.stderr, flush=True)
        return bool(kept)

    def fresh(self, name: str) -> Path:
        """An empty folder."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def neural(self, *words: object, before: Does | None = None) -> Attempt:
        """`neural …` in a process of its own; `before` is what is done to that process first."""
        return Attempt([str(word) for word in words], self.folder, before)

    def train(self, runs: Path, *more: str, before: Does | None = None, **changes: Any) -> Attempt:
        """The training, from its beginning."""
        return self.neural(*training(runs, **changes), *more, before=before)

    def resume(self, run: Path, *, before: Does | None = None) -> Attempt:
        """The training, from its last checkpoint."""
        return self.neural("train", "--resume", run, before=before)

    @cached_property
    def straight(self) -> Path:
        """A run that nothing happened to; after it this process has loaded what the next ones need."""
        names = self.folder / "modules.txt"
        if not names.exists():
            load()
            words = [str(word) for word in training(self.fresh("straight"))]
            ended = Attempt(words, self.folder, names=names).ended()
            assert ended.code == 0, ended.text
            load(names)
        return self.run_in(self.folder / "straight")

    def run_in(self, runs: Path) -> Path:
        """The one run in a folder."""
        (found,) = runs.glob("[!.]*")
        return found

    def same(self, run: Path, after: str, *, but: str = "") -> None:
        """Expect a run to be finished, and bit for bit the one that nothing happened to, all `but` one thing."""
        found = trace(run)
        # killed after its last checkpoint was saved and before older ones were removed, it has these too
        found["checkpoints"] = [one for one in found["checkpoints"] if one in self.wanted["checkpoints"]]
        unlike = [name for name, value in self.wanted.items() if name != but and found[name] != value]
        self.expect(not unlike, f"{after}: {', '.join(unlike)} are not those of an undisturbed run")
        self.expect(Run.open(run).status.state == "finished", f"{after}: it is not said to be finished")

    def clear(self, text: str, *words: object) -> None:
        """Expect a message for people: these words in it, and no traceback."""
        self.expect("Traceback" not in text, f"a traceback instead of a message: {text[-2000:]}")
        for word in words:
            self.expect(str(word) in text, f"the message does not say {word}: {text[-600:]}")

    def message(self, text: str, run: Path | None = None) -> str:
        """The last error in what was said, or its last line; without this machine's names."""
        lines = [line for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("error")]
        found = (errors or lines or ["nothing"])[-1].removeprefix("error: ")
        for place, name in [*([(run, "RUN")] if run else []), (self.folder, "…"), (ROOT, "…")]:
            found = found.replace(str(place), name)
        return found.replace(socket.gethostname(), "HOST")


def training(runs: Path, **changes: Any) -> list[object]:
    """What to say to `neural`; `training__steps=9` is a change to the experiment."""
    pairs = {**SMALLER, **{key.replace("__", "."): value for key, value in changes.items()}}
    return ["train", EXPERIMENT, "--runs", runs, *(f"--set={key}={value}" for key, value in pairs.items())]


def wait_until(true: Callable[[], object], what: str, seconds: float = 120) -> None:
    """Look every few milliseconds."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.003)

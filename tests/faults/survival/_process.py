"""`neural …` as a process of its own: a copy of this one, so that torch's import is paid for once."""

from __future__ import annotations

import importlib
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from neural.tracking.run import Run
from neural.training.runners.forked import NEEDED, Copy, be_neural

Does = Callable[[], object]
TOLD = struct.Struct("=qqqd")
"""What a process tells while it runs: its first step, its last, the last that was saved, and when the first was."""
PATIENCE = 300.0
"""Seconds until a process that does not end is a fault of its own."""


class Ended(NamedTuple):
    """What became of it."""

    code: int
    """Minus the signal's number, where one killed it."""
    text: str
    """All that it said."""


class Attempt(Copy):
    """The process, with what `subprocess.Popen` has, and how far it is, known without asking its folder."""

    def __init__(
        self, words: list[str], folder: Path, before: Does | None = None, *, names: Path | None = None
    ) -> None:
        """`before` is done to it first; a training that ends writes the `names` of what it has imported."""
        self.output = folder / f"said-{time.monotonic_ns()}.txt"
        self.output.touch()
        self._told = mmap.mmap(-1, TOLD.size)
        self._told[:] = TOLD.pack(0, 0, 0, 0.0)
        self.begun = time.monotonic()
        number = os.fork()
        if number == 0:
            be_neural(words, self.output, partial(_prepare, self._told, names, before))
        super().__init__(number)

    @property
    def made(self) -> int:
        """The last step that was made."""
        return TOLD.unpack(self._told[:])[1]

    @property
    def done(self) -> int:
        """Steps that it made itself."""
        first, made, _, _ = TOLD.unpack(self._told[:])
        return made - first + 1 if made else 0

    @property
    def saved(self) -> int:
        """The last step whose checkpoint was there when the training went on."""
        return TOLD.unpack(self._told[:])[2]

    @property
    def until_a_step(self) -> float:
        """Seconds from its start to its first step."""
        when = TOLD.unpack(self._told[:])[3]
        return when - self.begun if when else 0.0

    def ended(self) -> Ended:
        """Wait for its end."""
        end = time.monotonic() + PATIENCE
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                self.wait()
                raise TimeoutError(f"{self.output.read_text()} … and did not end within {PATIENCE:.0f} s")
            time.sleep(0.002)
        text = self.output.read_text(encoding="utf-8", errors="replace")
        self.output.unlink()
        return Ended(self.wait(), text)

    def send(self, what: signal.Signals) -> None:
        """A signal, unless it has ended."""
        self._send(what)


def load(names: Path | None = None) -> None:
    """Import here what every process will need, and what one has said that it imported: the next begin with it.

    Only imported: what has computed must not be copied, its threads are not.
    """
    for name in names.read_text().split() if names else (*NEEDED, "numba"):
        with suppress(Exception):   # it is loaded for speed alone
            importlib.import_module(name)


def _prepare(told: mmap.mmap, names: Path | None, before: Does | None) -> None:
    _note_steps(told)
    if names is not None:
        _note_modules(names)
    if before is not None:
        before()


def _note_steps(told: mmap.mmap) -> None:
    """Have the run say in shared memory, which outlives a kill, what was made and what was saved."""
    log, save = Run.log, Run.save

    def logs(run: Run, step: int, values: Any) -> None:
        first, _, saved, when = TOLD.unpack(told[:])
        told[:] = TOLD.pack(first or step, step, saved, when or time.monotonic())
        log(run, step, values)

    def saves(run: Run, step: int, *rest: Any, **more: Any) -> None:
        save(run, step, *rest, **more)
        first, made, _, when = TOLD.unpack(told[:])
        told[:] = TOLD.pack(first, made, step, when)

    Run.log, Run.save = logs, saves


def _note_modules(names: Path) -> None:
    """Have the run's end say what was imported for it."""
    finish = Run.finish

    def finishes(run: Run, *rest: Any) -> None:
        finish(run, *rest)
        names.write_text("\n".join(sys.modules))

    Run.finish = finishes

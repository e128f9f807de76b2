"""Run `neural …` in a forked child process, so that torch is imported once."""

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

from neural.cli.main import main as run_command_line
from neural.runs.run import Run
from neural.training.runners.forked import ForkedProcess, preload_modules, run_in_child

Action = Callable[[], object]
PROGRESS = struct.Struct("=qqqd")
"""Progress in shared memory: first step, last step, last saved step, time of the first step."""
TIMEOUT_SECONDS = 300.0
"""Seconds after which a process that does not end is a failure."""


class ProcessResult(NamedTuple):
    """Exit code and output of a process."""

    code: int
    """Minus the number of the signal that killed it."""
    text: str
    """Its complete output."""


class Attempt(ForkedProcess):
    """A process like `subprocess.Popen` that reports its progress without its run folder."""

    def __init__(
        self,
        words: list[str],
        folder: Path,
        before: Action | None = None,
        *,
        modules_file: Path | None = None,
    ) -> None:
        """The child calls `before` first, and finally writes its imports to `modules_file`."""
        self.output = folder / f"output-{time.monotonic_ns()}.txt"
        self.output.touch()
        self._progress = mmap.mmap(-1, PROGRESS.size)
        self._progress[:] = PROGRESS.pack(0, 0, 0, 0.0)
        self.start_time = time.monotonic()
        pid = os.fork()
        if pid == 0:
            work = partial(run_command_line, words, prog_name="neural")
            prepare = partial(_prepare, self._progress, modules_file, before)
            run_in_child(work, self.output, prepare)
        super().__init__(pid)

    @property
    def last_step(self) -> int:
        """The last completed step."""
        return PROGRESS.unpack(self._progress[:])[1]

    @property
    def step_count(self) -> int:
        """Number of steps of this process."""
        first, last, _, _ = PROGRESS.unpack(self._progress[:])
        return last - first + 1 if last else 0

    @property
    def saved_step(self) -> int:
        """The last step whose `Run.save` has returned."""
        return PROGRESS.unpack(self._progress[:])[2]

    @property
    def seconds_to_first_step(self) -> float:
        """Seconds from its start to its first step; 0 if there was none."""
        first_time = PROGRESS.unpack(self._progress[:])[3]
        return first_time - self.start_time if first_time else 0.0

    def wait_for_end(self) -> ProcessResult:
        """Wait until it ends; kills it after TIMEOUT_SECONDS."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                self.wait()
                raise TimeoutError(
                    f"{self.output.read_text()} … and did not end within {TIMEOUT_SECONDS:.0f} s"
                )
            time.sleep(0.002)
        text = self.output.read_text(encoding="utf-8", errors="replace")
        self.output.unlink()
        return ProcessResult(self.wait(), text)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        self._send_signal(number)


def load(modules_file: Path | None = None) -> None:
    """Import what child processes need, and the modules that one of them has listed.

    Only imports: nothing may be computed before forking, because threads are not copied.
    """
    preload_modules()
    for name in modules_file.read_text().split() if modules_file else ():
        with suppress(Exception):  # only for speed
            importlib.import_module(name)


def _prepare(progress: mmap.mmap, modules_file: Path | None, before: Action | None) -> None:
    _record_progress(progress)
    if modules_file is not None:
        _record_modules(modules_file)
    if before is not None:
        before()


def _record_progress(progress: mmap.mmap) -> None:
    """Patch `Run` to record steps and checkpoints in shared memory, which survives a kill."""
    log, save = Run.log, Run.save

    def log_and_record(run: Run, step: int, values: Any) -> None:
        first, _, saved, first_time = PROGRESS.unpack(progress[:])
        progress[:] = PROGRESS.pack(first or step, step, saved, first_time or time.monotonic())
        log(run, step, values)

    def save_and_record(run: Run, step: int, *args: Any, **kwargs: Any) -> None:
        save(run, step, *args, **kwargs)
        first, last, _, first_time = PROGRESS.unpack(progress[:])
        progress[:] = PROGRESS.pack(first, last, step, first_time)

    Run.log, Run.save = log_and_record, save_and_record


def _record_modules(modules_file: Path) -> None:
    """Patch `Run.finish` to write the names of all imported modules."""
    finish = Run.finish

    def finish_and_record(run: Run, *args: Any) -> None:
        finish(run, *args)
        modules_file.write_text("\n".join(sys.modules))

    Run.finish = finish_and_record

"""Where the trials of a sweep run: each one is a child process that trains, wherever that process is started.

A trial's run folder tells how far it came, so starting a trial again is always the same: go on with its run if there
is one, begin if there is none.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from neural.tracking.run import Run
from neural.tracking.trouble import RunError

TICK = 0.1
"""Seconds between two looks at a process."""
STAMP = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d"
"""What the name of a run folder begins with."""


@dataclass(frozen=True)
class Job:
    """A trial to run; made of plain things, so that it can be sent to another machine."""

    name: str
    folder: Path
    """Of the sweep: the trial's run and its output lie in it. All machines see it."""
    arguments: tuple[str, ...]
    """Of `neural train`, the first time."""

    @property
    def output(self) -> Path:
        """What the process said."""
        return self.folder / f"{self.name}.log"

    def run(self) -> Path | None:
        """The trial's run folder, if it has come that far."""
        pattern = re.compile(rf"{STAMP}_{re.escape(self.name)}(-\d+)?")
        return max((one for one in self.folder.iterdir() if pattern.fullmatch(one.name)), default=None)

    def state(self) -> str:
        """Of its run: finished, running, … or "" where there is none yet."""
        path = self.run()
        with suppress(RunError):
            if path is not None:
                with Run.open(path) as run:
                    return run.status.state
        return ""


class Ended(NamedTuple):
    """How an attempt at a trial ended."""

    state: str
    """finished, failed, or stopped; "refused" is a failure that would be the same again."""
    reason: str = ""


class Runner(ABC):
    """Starts jobs and says which have ended. Used in a `with` block, which leaves no process behind."""

    threads: int
    """For each job."""
    starts_at_once: ClassVar[bool] = True
    """Whether a job that was started runs; elsewhere it may wait for its turn, until its run folder is there."""

    def __init__(self, workers: int | None) -> None:
        """`workers` is how many jobs run at the same time, at most; None leaves it to the runner."""
        self.workers = workers

    @property
    @abstractmethod
    def room(self) -> bool:
        """Whether another job can be started."""

    @abstractmethod
    def start(self, job: Job) -> None:
        """Begin an attempt, or go on where the last one ended."""

    @abstractmethod
    def ended(self) -> list[tuple[Job, Ended]]:
        """Those that have ended since this was last asked. Answers within a second."""

    @abstractmethod
    def stop(self) -> None:
        """Ask all to save and stop; come back when they have."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


def begin(job: Job, threads: int) -> subprocess.Popen[bytes]:
    """The process of an attempt; its output is added to the job's file."""
    command = [sys.executable, "-m", "neural.training.child", str(os.getpid()), *words(job)]
    with job.output.open("ab") as output:
        # in a session of its own: Ctrl-C is for the sweep, which then asks each child once
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )


def words(job: Job) -> list[str]:
    """What to say to `neural` for the next attempt, which is announced in the job's file."""
    old = job.run()
    with job.output.open("ab") as output:
        output.write(_header(old).encode())
    return ["train", *(["--resume", str(old)] if old else [*job.arguments, "--runs", str(job.folder)]), "--quiet"]


def judged(job: Job, code: int) -> Ended:
    """How an attempt ended, by its exit code and its last words."""
    if code == 0:
        return Ended("finished")
    if code < 0:
        return Ended("failed", f"killed by {_signal(-code)}")
    said = last_words(job.output)
    return Ended({130: "stopped", 2: "refused"}.get(code, "failed"), said or f"ended with exit code {code}")


def attempt(job: Job, threads: int) -> Ended:
    """The whole of an attempt, for a process that does nothing else; interrupted, it stops the child and goes."""
    # of a worker that was killed the child may still be saving
    while job.state() == "running":
        time.sleep(TICK)
    if job.state() == "finished":
        return Ended("finished")
    child = begin(job, threads)
    try:
        while child.poll() is None:
            time.sleep(TICK)
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return judged(job, child.returncode)


def last_words(output: Path) -> str:
    """What the last attempt said last: its last error, else its last line."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.rpartition(HEADER)[2].splitlines()[1:] if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or [""])[-1]


HEADER = "==> "


def _header(old: Path | None) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"{HEADER}{when} {f'goes on with {old.name}' if old else 'begins'}\n"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

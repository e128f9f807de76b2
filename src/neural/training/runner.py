"""Base class of sweep runners. Every trial of a sweep is a child process that trains.

A sweep trains a model once per combination of settings; a trial is one of these trainings. An
attempt is one process of a trial. The next attempt resumes the trial's run folder if there is one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from neural.core.platform_support import (
    describe_exit_signal,
    new_session_options,
    request_stop,
)
from neural.runs.errors import RunError
from neural.runs.run import Run

POLL_SECONDS = 0.1
"""Interval at which processes are polled."""
TIMESTAMP_PATTERN = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d"
"""Start of a run folder's name."""
ATTEMPT_HEADER = "==> "
"""Prefix of the log line that marks the start of an attempt."""


@dataclass(frozen=True)
class TrialJob:
    """A trial to run. It has only plain data, so that it can be sent to another machine."""

    name: str
    folder: Path
    """Folder of the sweep, for the trial's run and log. All machines must see it."""
    request: str
    """What to train: the `TrainRequest` (workflows/train.py) of the first attempt, as JSON."""
    worker: str
    """Module that trains a request: `python -m WORKER PARENT_PID REQUEST`."""

    @property
    def log_path(self) -> Path:
        """The file that gets the output of all attempts."""
        return self.folder / f"{self.name}.log"

    def find_run(self) -> Path | None:
        """The trial's run folder, if it exists; the newest of several."""
        pattern = re.compile(rf"{TIMESTAMP_PATTERN}_{re.escape(self.name)}(-\d+)?")
        return max(
            (path for path in self.folder.iterdir() if pattern.fullmatch(path.name)), default=None
        )

    def read_state(self) -> str:
        """State of the trial's run (`finished`, `running`, …); "" if there is no run yet."""
        path = self.find_run()
        with suppress(RunError):
            if path is not None:
                with Run.open(path) as run:
                    return run.status.state
        return ""


class TrialResult(NamedTuple):
    """How an attempt of a trial ended."""

    state: str
    """`finished`, `failed`, `stopped`, or `refused`: failed in a way that a retry would repeat."""
    reason: str = ""
    """Why it failed, in one line."""


class Runner(ABC):
    """Starts jobs and reports which have ended. On exit of its `with` block no process is left."""

    threads: int
    """Number of CPU threads per job."""
    starts_immediately: ClassVar[bool] = True
    """Whether `start` starts a job at once. Else it may be queued until its run folder appears."""

    def __init__(self, workers: int | None) -> None:
        """`workers` is the largest number of concurrent jobs; None leaves it to the runner."""
        self.workers = workers

    @property
    @abstractmethod
    def has_capacity(self) -> bool:
        """Whether another job can be started."""

    @abstractmethod
    def start(self, job: TrialJob) -> None:
        """Start an attempt, which resumes the trial's run if there is one."""

    @abstractmethod
    def poll_finished(self) -> list[tuple[TrialJob, TrialResult]]:
        """Jobs that ended since the last call. Returns within a second."""

    @abstractmethod
    def stop(self) -> None:
        """Ask all jobs to save and stop, and wait for them."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


class TrialProcess(subprocess.Popen[bytes]):
    """Child process of an attempt. `terminate` lets it save first, on Windows too."""

    def terminate(self) -> None:
        """Ask it to finish its training step, save and stop."""
        request_stop(self)


def start_process(job: TrialJob, threads: int) -> TrialProcess:
    """Start the child process of an attempt; its output is appended to the job's log."""
    command = [sys.executable, "-m", job.worker, str(os.getpid()), create_request(job)]
    with job.log_path.open("ab") as log:
        # in its own session: Ctrl-C goes to the sweep only, which then signals each child once
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "PYTHONIOENCODING": "utf-8",  # `read_last_error` reads the log so
        }
        return TrialProcess(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            **new_session_options(),
        )


def create_request(job: TrialJob) -> str:
    """The `TrainRequest` of the next attempt as JSON: resume the trial's run, or start one.

    Also writes the header line of the attempt to the job's log.
    """
    run = job.find_run()
    with job.log_path.open("ab") as log:
        log.write(_format_header(run).encode())
    if run is not None:
        return json.dumps({"resume": str(run)})
    return json.dumps({**json.loads(job.request), "runs": str(job.folder)})


def interpret_exit(job: TrialJob, exit_code: int) -> TrialResult:
    """The result of an attempt, from its exit code and the last error in its log."""
    if exit_code == 0:
        return TrialResult("finished")
    signal_name = describe_exit_signal(exit_code)
    if signal_name is not None:
        return TrialResult("failed", f"killed by {signal_name}")
    reason = read_last_error(job.log_path)
    return TrialResult(
        # exit codes of workflows/train_worker.py: 130 stopped by a signal, 2 invalid settings
        {130: "stopped", 2: "refused"}.get(exit_code, "failed"),
        reason or f"ended with exit code {exit_code}",
    )


def run_attempt(job: TrialJob, threads: int) -> TrialResult:
    """Run an attempt to its end. An exception, such as an interrupt, stops the child first."""
    # the child process of an earlier attempt, whose parent was killed, may still be saving
    while job.read_state() == "running":
        time.sleep(POLL_SECONDS)
    if job.read_state() == "finished":
        return TrialResult("finished")
    child = start_process(job, threads)
    try:
        while child.poll() is None:
            time.sleep(POLL_SECONDS)
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return interpret_exit(job, child.returncode)


def read_last_error(log_path: Path) -> str:
    """The last error line of the last attempt in a log, else its last line."""
    try:
        text = log_path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [
        line.strip() for line in text.rpartition(ATTEMPT_HEADER)[2].splitlines()[1:] if line.strip()
    ]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or [""])[-1]


def _format_header(run: Path | None) -> str:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"{ATTEMPT_HEADER}{now} {f'resumes {run.name}' if run else 'starts'}\n"

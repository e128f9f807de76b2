"""Runner of child processes on this machine. A job (runner.py) is one training of a sweep."""

from __future__ import annotations

import time
from typing import Any, Protocol

from neural.core.platform_support import count_cores
from neural.training.runner import (
    POLL_SECONDS,
    Runner,
    TrialJob,
    TrialResult,
    interpret_exit,
    start_process,
)


class ProcessHandle(Protocol):
    """The methods of `subprocess.Popen` that a runner needs."""

    @property
    def returncode(self) -> int | Any: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Local(Runner):
    """Runs one process per core, or up to `workers` processes that share the cores."""

    def __init__(self, workers: int | None) -> None:
        cores = count_cores()
        super().__init__(workers or cores)
        self.threads = max(1, cores // (workers or cores))
        self._running: dict[TrialJob, ProcessHandle] = {}
        self._waiting: list[TrialJob] = []

    @property
    def has_capacity(self) -> bool:
        """Whether fewer than `workers` jobs are running or waiting."""
        return len(self._running) + len(self._waiting) < (self.workers or 1)

    def start(self, job: TrialJob) -> None:
        """Start a job, as soon as no other process writes its run folder.

        The job waits if a child process of an earlier, killed sweep is still saving there.
        """
        self._waiting.append(job)
        self._start_waiting()

    def poll_finished(self) -> list[tuple[TrialJob, TrialResult]]:
        """Jobs that ended since the last call; sleeps for POLL_SECONDS if there is none."""
        self._start_waiting()
        ended = [
            (job, process.returncode)
            for job, process in self._running.items()
            if process.poll() is not None
        ]
        for job, _ in ended:
            del self._running[job]
        if not ended:
            time.sleep(POLL_SECONDS)
        return [(job, interpret_exit(job, exit_code)) for job, exit_code in ended]

    def stop(self) -> None:
        """Ask every process to stop, and wait: each finishes its step and saves."""
        self._waiting.clear()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    def __exit__(self, *_: object) -> None:
        # no process is left, unless an exception interrupted the sweep
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()

    def _start_waiting(self) -> None:
        """Start the waiting jobs whose run folder no other process writes."""
        for job in list(self._waiting):
            if job.read_state() != "running":
                self._waiting.remove(job)
                self._running[job] = self.start_process(job)

    def start_process(self, job: TrialJob) -> ProcessHandle:
        """Start the child process of a job."""
        return start_process(job, self.threads)

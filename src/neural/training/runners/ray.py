"""A Ray cluster: every trial is a task of one CPU that starts the same child process on a worker.

All machines must see the sweep's folder and the experiment's files under the same paths.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import Any, ClassVar

from neural.tracking.trouble import RunError
from neural.training.runner import TICK, Ended, Job, Runner, attempt

PATIENCE = 60.0
"""Seconds for the trials to save, when all are stopped."""


class Ray(Runner):
    """The cluster that RAY_ADDRESS names, or the session that is open; else one on this machine alone."""

    threads = 1
    starts_at_once: ClassVar[bool] = False

    def __init__(self, workers: int | None) -> None:
        """By default as many at once as the cluster has CPUs: it keeps the others waiting."""
        super().__init__(workers)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")   # no word to anybody outside
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as missing:
            raise RunError('`--on ray` needs a package that is not here; `pip install "neural[sweep]"`') from missing
        self._opened = ExitStack()
        if not self._ray.is_initialized():
            self._opened.enter_context(redirect_stdout(_FirstLines()))
            self._open(workers)
            self._opened.callback(self._ray.shutdown)
        # retries are counted by the sweep, which names them; a worker that dies is one failed attempt
        self._task = self._ray.remote(num_cpus=self.threads, max_retries=0)(attempt)
        self._jobs: dict[Any, Job] = {}

    @property
    def room(self) -> bool:
        """Ray keeps what does not fit waiting, unless fewer were asked for."""
        return self.workers is None or len(self._jobs) < self.workers

    def start(self, job: Job) -> None:
        """Hand the trial to the cluster."""
        self._jobs[self._task.options(name=job.name).remote(job, self.threads)] = job

    def ended(self) -> list[tuple[Job, Ended]]:
        """A worker or a whole node that died has failed; its trial goes on elsewhere."""
        if not self._jobs:
            return []
        gone, _ = self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=TICK)
        return [(self._jobs.pop(one), self._result(one)) for one in gone]

    def stop(self) -> None:
        """Interrupts the tasks: each asks its child to save, and waits for it."""
        for one in self._jobs:
            self._ray.cancel(one)
        if self._jobs:
            self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=PATIENCE)
        self._jobs.clear()

    def __exit__(self, *_: object) -> None:
        for one in self._jobs:
            self._ray.cancel(one, force=True)   # the children see that their parents are gone
        self._jobs.clear()
        self._opened.close()

    def _open(self, workers: int | None) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if os.environ.get("RAY_ADDRESS"):
                self._ray.init(address="auto", **quiet)
            else:
                self._ray.init(address="local", num_cpus=workers or os.cpu_count(), include_dashboard=False, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as wrong:
            self._opened.close()
            raise RunError(f"no Ray cluster answers: {str(wrong).strip().splitlines()[0]}") from wrong

    def _result(self, one: Any) -> Ended:
        try:
            return self._ray.get(one)
        except self._ray.exceptions.TaskCancelledError:
            return Ended("stopped")
        except self._ray.exceptions.RayError as died:
            return Ended("failed", f"the worker died: {str(died).strip().splitlines()[0]}")


class _FirstLines(io.TextIOBase):
    """Ray prints pages of its own state to standard output when a node dies; what happened is in the first line."""

    def write(self, text: str) -> int:
        """The first line of a message, to standard error."""
        sys.stderr.write(text if text == "\n" else text.partition("\n")[0])
        return len(text)

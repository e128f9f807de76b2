"""Runner on a Ray cluster: every trial is a Ray task with one CPU that starts a child process.

A trial is one training of a sweep, an attempt one process of a trial (runner.py). All machines must
see the sweep's folder and the experiment's files under the same paths.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import Any, ClassVar

from neural.core.distribution import format_install_command
from neural.runs.errors import RunError
from neural.training.runner import POLL_SECONDS, Runner, TrialJob, TrialResult, run_attempt

STOP_TIMEOUT_SECONDS = 60.0
"""How long `stop` waits for the trials to save."""


class Ray(Runner):
    """Runs trials on the cluster at RAY_ADDRESS, in an open Ray session, or on a local cluster."""

    threads = 1
    starts_immediately: ClassVar[bool] = False

    def __init__(self, workers: int | None) -> None:
        """Without `workers`, Ray queues trials until a CPU of the cluster is free."""
        super().__init__(workers)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise RunError(
                "`--runner ray` needs a package that is not installed: "
                + format_install_command("sweep")
            ) from error
        self._session = ExitStack()  # what `__exit__` undoes
        if not self._ray.is_initialized():
            self._session.enter_context(redirect_stdout(_FirstLineWriter()))
            self._connect(workers)
            self._session.callback(self._ray.shutdown)
        # the sweep counts and reports retries; a worker that dies is one failed attempt
        self._task = self._ray.remote(num_cpus=self.threads, max_retries=0)(run_attempt)
        self._jobs: dict[Any, TrialJob] = {}
        """Submitted trials, by the reference to the result of their Ray task."""

    @property
    def has_capacity(self) -> bool:
        """Whether another trial may be given to Ray, which queues what does not fit."""
        return self.workers is None or len(self._jobs) < self.workers

    def start(self, job: TrialJob) -> None:
        """Submit the trial to the cluster."""
        self._jobs[self._task.options(name=job.name).remote(job, self.threads)] = job

    def poll_finished(self) -> list[tuple[TrialJob, TrialResult]]:
        """Trials that ended since the last call. A worker or node that died is a failed attempt."""
        if not self._jobs:
            return []
        ended, _ = self._ray.wait(
            list(self._jobs), num_returns=len(self._jobs), timeout=POLL_SECONDS
        )
        return [(self._jobs.pop(ref), self._get_result(ref)) for ref in ended]

    def stop(self) -> None:
        """Cancel all tasks: each asks its child process to save, and waits for it."""
        for ref in self._jobs:
            self._ray.cancel(ref)
        if self._jobs:
            self._ray.wait(
                list(self._jobs), num_returns=len(self._jobs), timeout=STOP_TIMEOUT_SECONDS
            )
        self._jobs.clear()

    def __exit__(self, *_: object) -> None:
        for ref in self._jobs:
            # kills the Ray worker; its child process notices that and stops (parent_watch.py)
            self._ray.cancel(ref, force=True)
        self._jobs.clear()
        self._session.close()

    def _connect(self, workers: int | None) -> None:
        """Connect to the cluster at RAY_ADDRESS, else start a local one with `workers` CPUs."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if os.environ.get("RAY_ADDRESS"):
                self._ray.init(address="auto", **options)
            else:
                self._ray.init(
                    address="local",
                    num_cpus=workers or os.cpu_count(),
                    include_dashboard=False,
                    **options,
                )
        except (ConnectionError, ValueError, RuntimeError) as error:
            self._session.close()
            raise RunError(
                f"cannot connect to a Ray cluster: {str(error).strip().splitlines()[0]}"
            ) from error

    def _get_result(self, ref: Any) -> TrialResult:
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.TaskCancelledError:
            return TrialResult("stopped")
        except self._ray.exceptions.RayError as error:
            return TrialResult("failed", f"the worker died: {str(error).strip().splitlines()[0]}")


class _FirstLineWriter(io.TextIOBase):
    """Replaces stdout: Ray prints pages when a node dies; only first lines go on, to stderr."""

    def write(self, text: str) -> int:
        """Write the first line of a message to stderr."""
        sys.stderr.write(text if text == "\n" else text.partition("\n")[0])
        return len(text)

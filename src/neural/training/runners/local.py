"""Processes of this machine."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

from neural.training.runner import TICK, Ended, Job, Runner, begin, judged


class Process(Protocol):
    """What there is to do with one: as in `subprocess.Popen`."""

    @property
    def returncode(self) -> int | Any: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Local(Runner):
    """As many processes at once as there are cores, or as asked for; the cores are shared among them."""

    def __init__(self, workers: int | None) -> None:
        """By default one per core."""
        cores = os.cpu_count() or 1
        super().__init__(workers or cores)
        self.threads = max(1, cores // (workers or cores))
        self._running: dict[Job, Process] = {}
        self._waiting: list[Job] = []

    @property
    def room(self) -> bool:
        """Whether a process is free."""
        return len(self._running) + len(self._waiting) < (self.workers or 1)

    def start(self, job: Job) -> None:
        """At the next look, or once nobody else writes its run: a child of a sweep that was killed may be saving."""
        self._waiting.append(job)
        self._begin()

    def ended(self) -> list[tuple[Job, Ended]]:
        """Looks at all, and takes a short rest where nothing has happened."""
        self._begin()
        gone = [(job, process.returncode) for job, process in self._running.items() if process.poll() is not None]
        for job, _ in gone:
            del self._running[job]
        if not gone:
            time.sleep(TICK)
        return [(job, judged(job, code)) for job, code in gone]

    def stop(self) -> None:
        """SIGTERM to each: they finish their step and save."""
        self._waiting.clear()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():   # none, unless somebody could not wait
            process.kill()
            process.wait()
        self._running.clear()

    def _begin(self) -> None:
        for job in list(self._waiting):
            if job.state() != "running":
                self._waiting.remove(job)
                self._running[job] = self.process(job)

    def process(self, job: Job) -> Process:
        """A new one, that trains."""
        return begin(job, self.threads)

"""Running a sweep: start what there is room for, see what has ended, start again what failed."""

from __future__ import annotations

import time
from collections.abc import Callable

from neural.sweep import Row, Sweep
from neural.tracking.status import Lock, Status, mine
from neural.training.runner import Ended, Job, Runner

EVERY = 2.0
"""Seconds between two looks at the runs."""


def go(sweep: Sweep, runner: Runner, tell: Callable[[Row], None] = lambda row: None) -> None:
    """Run every trial that is not finished. `tell` hears of every change, and of steps now and then.

    KeyboardInterrupt stops all trials so that they can go on, and comes back.
    """
    lock = Lock.take(sweep.path / "lock", sweep.writer or Status(state="running"))
    try:
        sweep.writer = mine("running")
        _Loop(sweep, runner, tell).go()
    finally:
        sweep.writer = None
        sweep.refresh()
        sweep.write()
        lock.release()


class _Loop:
    """The trials that wait, and those that have been handed to the runner."""

    def __init__(self, sweep: Sweep, runner: Runner, tell: Callable[[Row], None]) -> None:
        self.sweep, self.runner, self.tell = sweep, runner, tell
        self.retries: int = sweep.settings["retries"]
        sweep.refresh()
        self.queue = sweep.unfinished
        self.tries = dict.fromkeys((row.trial.name for row in self.queue), 0)
        self.open: dict[Job, Row] = {}
        self.looked = time.monotonic()
        for row in self.queue:
            row.state, row.reason = "waiting", ""

    def go(self) -> None:
        """Until there is nothing left to do."""
        self.sweep.write()
        try:
            while self.queue or self.open:
                while self.queue and self.runner.room:
                    self.start(self.queue.pop(0))
                for job, ended in self.runner.ended():
                    self.close(self.open.pop(job), ended)
                self.watch()
        except KeyboardInterrupt:
            try:
                self.runner.stop()
            finally:   # also where somebody could not wait and asked again
                for row in self.open.values():
                    row.state = "stopped" if row.state == "running" or self.sweep.job(row).run() else "waiting"
            raise

    def start(self, row: Row) -> None:
        """An attempt at a trial."""
        job = self.sweep.job(row)
        self.tries[row.trial.name] += 1
        row.attempts += 1
        self.open[job] = row
        self.runner.start(job)
        if self.runner.starts_at_once:
            row.state = "running"
            self.changed(row)

    def close(self, row: Row, ended: Ended) -> None:
        """What became of an attempt."""
        row.state, row.reason = ("finished" if ended.state == "finished" else "failed"), ended.reason
        self.sweep.look(row)
        self.changed(row)
        if row.state == "failed" and ended.state != "refused" and self.tries[row.trial.name] <= self.retries:
            row.state = "waiting"
            self.queue.append(row)

    def watch(self) -> None:
        """How far the running ones are, every few seconds."""
        if time.monotonic() - self.looked < EVERY:
            return
        self.looked = time.monotonic()
        for row in self.open.values():
            before = row.state
            self.sweep.look(row)
            if row.state == "finished":   # its process will say so itself
                row.state = "running"
            if row.state != before:
                self.changed(row)
            self.tell(row)
        self.sweep.write(durable=False)

    def changed(self, row: Row) -> None:
        """On disk first, then said."""
        self.sweep.write()
        self.tell(row)

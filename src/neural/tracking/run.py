"""A run: the folder that training writes and views read. docs/run-folder.md describes it file by file.

    run = Run.create(Path("runs"), "tiny", settings={...}, program=text)      to write
    run = Run.reopen(path)                                                    to go on writing
    run = Run.open(path)                                                      to read, also while it is written

    settings.json  program.neural  environment.json      what was asked for
    rows.sqlite                                          what was measured (store.py)
    checkpoints/                                         what was learned (checkpoint.py)
    status.json  lock                                    who writes it, and how far it is (status.py)

One process writes, on a local disk. It may be killed at any instant: the folder opens, no row is torn, and at least
the last checkpoint whose `save` had returned is there.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neural.core.files import write_atomically
from neural.core.registry import UnknownName
from neural.tracking import checkpoint
from neural.tracking.checkpoint import Checkpoint
from neural.tracking.environment import environment as this_environment
from neural.tracking.folder import (
    CHECKPOINTS,
    ROWS,
    STATUS,
    as_json,
    check_sums,
    key_of_sum,
    put_in_place,
    run_folder,
    status_of,
    sum_of,
    text_of,
)
from neural.tracking.recorded import Recorded
from neural.tracking.sink import Sink
from neural.tracking.sinks import registry as sinks
from neural.tracking.status import Lock, Status, mine, write_status
from neural.tracking.store import Store, Writer
from neural.tracking.trouble import RunError, in_words

if TYPE_CHECKING:
    from torch import Tensor

BEAT = 5.0
"""Seconds between two heartbeats."""


class Run(Recorded):
    """A run folder, to write and to read; made by `create`, `reopen` or `open`."""

    def __init__(self, path: Path, store: Store, lock: Lock | None = None, *, started: float = 0.0) -> None:
        super().__init__(path, store)
        self._lock, self._started = lock, started
        self._step, self._facts, self._beaten = 0, dict[str, Any](), 0.0
        self.previous: Status | None = None
        """How the run stood before it was reopened."""
        self._sinks: list[Sink] = []

    @classmethod
    def create(
        cls, root: Path, name: str, *, settings: Mapping[str, Any], program: str | None,
        environment: Mapping[str, Any] | None = None,
    ) -> Run:  # fmt: skip
        """A new run in `root`, called after the time and `name`. It is made aside and appears whole, or not at all."""
        root, started = Path(root).absolute(), time.time()
        aside = root / f".new-{os.getpid()}-{time.time_ns()}"
        files = {
            "settings.json": as_json(settings), "program.neural": program,
            "environment.json": as_json(this_environment() if environment is None else environment),
        }  # fmt: skip
        files = {file: text for file, text in files.items() if text is not None}
        with in_words(f"no run can be created in {root}"):
            root.mkdir(parents=True, exist_ok=True)
            lock = None
            try:
                (aside / CHECKPOINTS).mkdir(parents=True)
                for file, text in files.items():
                    write_atomically(aside / file, text)
                Writer.create(aside / ROWS, {key_of_sum(file): sum_of(text) for file, text in files.items()})
                write_status(aside / STATUS, mine("running", started=started), durable=True)
                lock = Lock(aside / "lock")
                path = put_in_place(aside, root, name, started)
                return cls(path, Writer(path / ROWS), lock, started=started)
            except BaseException:
                if lock is not None:
                    lock.release()
                shutil.rmtree(aside, ignore_errors=True)
                raise

    @classmethod
    def reopen(cls, path: Path | str) -> Run:
        """An existing run, to go on writing; refused while another process does."""
        path = run_folder(path)
        with closing(Store(path / ROWS)) as store:   # says what is wrong with it before anything is touched
            check_sums(path, store)
        status = status_of(path)
        lock = Lock.take(path / "lock", status)
        try:
            with in_words(f"{path} cannot be written"):
                started = status.started or time.time()
                again = mine("running", step=status.step, started=started, facts=status.facts)
                write_status(path / STATUS, again, durable=True)
                for left in path.glob(".*.*"):   # by a process that was killed while it replaced a file
                    left.unlink()
                (path / CHECKPOINTS).mkdir(exist_ok=True)
            run = cls(path, Writer(path / ROWS), lock, started=started)
        except BaseException:
            lock.release()
            raise
        run._step, run._facts, run.previous = status.step, dict(status.facts), status
        return run

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """An existing run, for reading."""
        path = run_folder(path)
        return cls(path, Store(path / ROWS))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Scalars of a step. They are on disk within a second or at `commit`; a name logged again replaces the old."""
        self._writer.log(step, values)
        for sink in list(self._sinks):
            try:
                sink.log(step, values)
            except Exception as error:   # a curve drawn elsewhere is not worth a training, whatever went wrong there
                self._sinks.remove(sink)
                self.event(step, "warning", f"{type(sink).__name__} gets nothing more: {error}")

    def log_arrays(self, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Measures of a step as arrays, usually [layer, head]; kept as 32-bit floats."""
        self._writer.log_arrays(step, arrays)

    def log_maps(self, step: int, maps: Mapping[str, Any]) -> None:
        """Packed maps of a step."""
        self._writer.log_maps(step, maps)

    def describe(self, key: str, value: Any) -> None:
        """Say what the numbers mean, in JSON: names of layers, labels of the probe. The last word counts.

        ValueError where a key that readers know has a value they cannot read (see metadata_schema.py).
        """
        self._writer.describe(key, value)

    def event(self, step: int, kind: str, text: str) -> None:
        """Something that happened once: "switch", "restart", "warning", "diverged"."""
        self._writer.event(step, kind, text)

    def commit(self) -> None:
        """When this returns, everything logged so far survives a kill."""
        self._writer.write()

    def save(
        self, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, best: bool = False, keep: int = 2
    ) -> None:
        """A checkpoint, after all rows so far. Then older ones go, but for the newest `keep` and the best."""
        self._writer.write(saved=step)
        folder = self.path / CHECKPOINTS
        with in_words(f"the checkpoint of step {step} cannot be saved in {self.path}"):
            checkpoint.write(folder, step, tensors, facts, best=best)
            checkpoint.prune(folder, max(1, keep))

    def replace_settings(self, settings: Mapping[str, Any], program: str | None) -> None:
        """Write settings.json and program.neural anew, for a run resumed with other settings.

        A kill in between leaves files that `reopen` accepts: until both are in place, the rows
        know the sums of the old ones and of the new ones.
        """
        files = {"settings.json": as_json(settings), "program.neural": program}
        texts = {
            file: text
            for file, text in files.items()
            if text is not None and text != text_of(self.path / file)
        }
        sums = {key_of_sum(file): sum_of(text) for file, text in texts.items()}
        old = {key: self._writer.meta(key) for key in sums}
        both = {key: f"{old[key]} {sums[key]}" for key in sums if old[key] is not None}
        self._writer.remember(both)
        with in_words(f"the settings of {self.path} cannot be written"):
            for file, text in texts.items():
                write_atomically(self.path / file, text)
        self._writer.remember(sums)
        for name in ("settings", "program"):
            self.__dict__.pop(name, None)   # cached

    def forget_after(self, step: int) -> None:
        """Delete everything of later steps: what a resumed run will write again."""
        with in_words(f"{self.path} cannot be taken back to step {step}"):
            checkpoint.forget_after(self.path / CHECKPOINTS, step)   # first: rows without it are harmless, not it
        self._writer.forget_after(step)
        self._step = min(self._step, step)

    def beat(self, step: int, **facts: Any) -> None:
        """Say how far it is. Cheap: written every few seconds; facts stay until they are said anew."""
        self._step = step
        self._facts |= facts
        self._writer.write_if_due()
        if time.monotonic() - self._beaten >= BEAT:
            self._beaten = time.monotonic()
            with suppress(OSError):   # the rows will tell of a full disk; a heartbeat alone is not worth a training
                self._say("running", "", durable=False)

    @property
    def reached(self) -> int:
        """The last step that `beat` was told of."""
        return self._step

    def finish(self, state: str, message: str = "") -> None:
        """Write what is left, say how it ended ("finished", "failed", "stopped"), let go.

        Where the rows cannot be written any more, the run has failed: the status says so, if it can, and so does a
        RunError, unless the caller knew.
        """
        trouble = None
        try:
            self.commit()
        except RunError as error:
            state, message, trouble = ("failed", message or str(error), None if state == "failed" else error)
        try:
            with in_words(f"{self.path} cannot be finished"):
                self._say(state, message, durable=True)
        except RunError as error:
            trouble = trouble or (None if state == "failed" else error)
        self.close()
        if trouble:
            raise trouble

    def send_to(self, names: Iterable[str]) -> None:
        """Send scalars to other trackers too, as they are logged: `tensorboard`, `mlflow`, `wandb`, `trackio`."""
        try:
            self._sinks += [sinks.get(name)(self.name, self.path, self.settings) for name in names]
        except UnknownName as unknown:
            raise RunError(str(unknown)) from None

    def restore(self, which: Literal["newest", "best"] | int = "newest") -> Checkpoint | None:
        """As for readers; a writer also takes down which broken ones were passed over."""
        found = super().restore(which)
        if found is not None and self._lock:
            for text in found.skipped:
                self.event(found.step, "warning", text)
        return found

    def close(self) -> None:
        """Let go of the folder. A writer says `finish`."""
        while self._sinks:
            with suppress(Exception):   # as in `log`
                self._sinks.pop().close()
        try:
            super().close()
        finally:
            if self._lock:
                self._lock.release()

    @property
    def _writer(self) -> Writer:
        if not isinstance(self._store, Writer):
            raise RunError(f"{self.path} was opened for reading; `Run.reopen` opens it for writing")
        return self._store

    def _say(self, state: str, message: str, *, durable: bool) -> None:
        status = mine(state, step=self._step, message=message, started=self._started, facts=self._facts)
        write_status(self.path / STATUS, status, durable=durable)

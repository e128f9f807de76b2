"""A run: the folder that one training writes and analyses read (format: docs/run-folder.md).

    run = Run.create(Path("runs"), "tiny", settings={...}, program=text)      to write
    run = Run.reopen(path)                                                    to resume writing
    run = Run.open(path)                                                      to read, at any time

    settings.json  program.neural  environment.json      configuration
    rows.sqlite                                          measurements (store.py)
    checkpoints/                                         weights (checkpoint.py)
    status.json  lock                                    progress, writer (status.py, lock.py)

One process writes, on a local disk. It may be killed at any instant: the folder still opens, every
row is complete, and at least the last checkpoint whose `save` had returned is there.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np

from neural.core.files import write_atomically
from neural.core.platform_support import CAN_MOVE_OPEN_FILES, delete_file
from neural.core.redaction import REDACTED, has_secrets, redact_settings, redact_text
from neural.core.registry import UnknownNameError
from neural.runs import checkpoint
from neural.runs.checkpoint import Checkpoint
from neural.runs.environment import collect_environment
from neural.runs.errors import RunError, translate_errors
from neural.runs.folder import (
    CHECKPOINTS_DIR,
    PRIVATE_FOLDER_MODE,
    ROWS_FILE,
    RUN_ID_KEY,
    STATUS_FILE,
    check_paths,
    checksum_key,
    find_run_folder,
    format_json,
    load_status,
    publish_folder,
    read_text,
    sha256_text,
    verify_checksums,
)
from neural.runs.lock import RunLock
from neural.runs.metadata_schema import to_json
from neural.runs.run_reader import RunReader
from neural.runs.sink import Sink
from neural.runs.sinks import registry as sinks
from neural.runs.status import RunStatus, current_status, write_status
from neural.runs.store import RunStore, RunWriter

if TYPE_CHECKING:
    from torch import Tensor

HEARTBEAT_SECONDS = 5.0
"""Seconds between two updates of status.json."""


class Run(RunReader):
    """A run folder for writing and reading; use `create`, `reopen` or `open`."""

    def __init__(
        self, path: Path, store: RunStore, lock: RunLock | None = None, *, started: float = 0.0
    ) -> None:
        """`lock` is None when reading; `started` is the Unix time of the run's start."""
        super().__init__(path, store)
        self._lock, self._started = lock, started
        # `_facts`: progress values for status.json, such as the loss (see `heartbeat`)
        self._step, self._facts, self._last_heartbeat = 0, dict[str, Any](), 0.0
        self.previous: RunStatus | None = None
        """Status of the run before it was reopened; None for a new run."""
        self._sinks: list[Sink] = []
        """External trackers that receive the scalars too (sink.py)."""

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        *,
        settings: Mapping[str, Any],
        program: str | None,
        environment: Mapping[str, Any] | None = None,
    ) -> Run:
        """Create `root/<time>_<name>` for writing.

        `settings` and `program` (source text of the network in the `.neural` language) are stored,
        without passwords and access keys (core/redaction.py).
        The folder is prepared under a hidden name and renamed: it appears complete, or not at all.
        """
        root, started = Path(root).absolute(), time.time()
        staging = root / f".new-{os.getpid()}-{time.time_ns()}"
        environment = collect_environment() if environment is None else environment
        files = {
            "settings.json": format_json(redact_settings(settings)),
            "program.neural": program,
            "environment.json": format_json(environment),
        }
        files = {file: text for file, text in files.items() if text is not None}
        check_paths(root, name, files.values())
        with translate_errors(f"no run can be created in {root}"):
            root.mkdir(parents=True, exist_ok=True)
            lock = None
            try:
                (staging / CHECKPOINTS_DIR).mkdir(parents=True)
                if has_secrets(settings) or REDACTED in str(environment.get("command")):
                    # Where one secret was removed, others may be stored that were not recognized.
                    # Other folders have the mode of the umask, so that groups can share them.
                    staging.chmod(PRIVATE_FOLDER_MODE)
                for file, text in files.items():
                    write_atomically(staging / file, text)
                checksums = {checksum_key(file): sha256_text(text) for file, text in files.items()}
                RunWriter.create(staging / ROWS_FILE, {**checksums, RUN_ID_KEY: uuid4().hex})
                status = current_status("running", started=started)
                write_status(staging / STATUS_FILE, status, durable=True)
                # locked before the folder gets its name: no other process can write it first
                if CAN_MOVE_OPEN_FILES:
                    lock = RunLock(staging / "lock")
                path = publish_folder(staging, root, name, started)
                lock = lock or RunLock.acquire(path / "lock", status)
                return cls(path, RunWriter(path / ROWS_FILE), lock, started=started)
            except BaseException:
                if lock is not None:
                    lock.release()
                shutil.rmtree(staging, ignore_errors=True)
                raise

    @classmethod
    def reopen(cls, path: Path | str) -> Run:
        """Open an existing run for writing; RunError while another process writes it."""
        path = find_run_folder(path)
        with closing(RunStore(path / ROWS_FILE)) as store:  # reports damage before any change
            verify_checksums(path, store)
        previous = load_status(path)
        lock = RunLock.acquire(path / "lock", previous)
        try:
            with translate_errors(f"{path} cannot be written"):
                started = previous.started or time.time()
                status = current_status(
                    "running", step=previous.step, started=started, facts=previous.facts
                )
                write_status(path / STATUS_FILE, status, durable=True)
                # temporary files of a process that was killed while it replaced a file
                for leftover in path.glob(".*.*"):
                    delete_file(leftover)
                (path / CHECKPOINTS_DIR).mkdir(exist_ok=True)
            run = cls(path, RunWriter(path / ROWS_FILE), lock, started=started)
        except BaseException:
            lock.release()
            raise
        run._step, run._facts, run.previous = previous.step, dict(previous.facts), previous
        return run

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """Open an existing run for reading, also while it is being written."""
        path = find_run_folder(path)
        return cls(path, RunStore(path / ROWS_FILE))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add scalars of a step; logging a name again for the same step replaces its value.

        They are written within a second, or by `commit`.
        """
        self._writer.log(step, values)
        for sink in list(self._sinks):
            try:
                sink.log(step, values)
            except Exception as error:  # an external tracker must not stop training
                self._sinks.remove(sink)
                message = f"{type(sink).__name__} failed and receives no more values: {error}"
                self.log_event(step, "warning", message)

    def log_arrays(self, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Add measures of a step (statistics of attention), by name; stored as float32.

        The shape of a measure is usually (layers, heads).
        """
        self._writer.log_arrays(step, arrays)

    def log_maps(self, step: int, maps: Mapping[str, Any]) -> None:
        """Add attention weights of a step by layer name, encoded by capture/map_encoding.py."""
        self._writer.log_maps(step, maps)

    def set_metadata(self, key: str, value: Any) -> None:
        """Set a metadata entry, such as the names of the attention layers; replaces the last value.

        ValueError if the value is not JSON or not of the key's declared type (metadata_schema.py).
        """
        self._writer.set_metadata(key, to_json(key, value, self.metadata_fields))

    def log_event(self, step: int, kind: str, text: str) -> None:
        """Add an event of a step: its `kind`, and a `text` for the user.

        Kinds: "restart" (training resumed from a checkpoint), "warning", "diverged" (the loss is
        NaN or infinite), "imported" (weights of another program), and "switch": the task
        `focus` with the paradigm `hybrid` (tasks/focus/) changes from its first loss to its second.
        """
        self._writer.log_event(step, kind, redact_text(text))

    def commit(self) -> None:
        """Write everything logged so far; when this returns, it survives a kill of the process."""
        self._writer.commit()

    def discard_snapshot(self) -> None:
        """Forget measures, maps and metadata that are not written yet, after an error."""
        self._writer.discard_snapshot()

    def save(
        self,
        step: int,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, Any],
        *,
        best: bool = False,
        keep: int = 2,
    ) -> None:
        """Write all rows, then a checkpoint; then delete all but the newest `keep` and the best."""
        # Rows first, so that no checkpoint is newer than its rows. `checkpoint_step` also makes the
        # commit wait for the disk: this must hold after a power failure, too.
        self._writer.commit(checkpoint_step=step)
        folder = self.path / CHECKPOINTS_DIR
        with translate_errors(f"the checkpoint of step {step} cannot be saved in {self.path}"):
            checkpoint.write_checkpoint(folder, step, tensors, metadata, is_best=best)
            checkpoint.prune_checkpoints(folder, max(1, keep))

    def replace_settings(self, settings: Mapping[str, Any], program: str | None) -> None:
        """Replace settings.json and program.neural, for a run resumed with other settings.

        A kill in between leaves files that `reopen` accepts: until both are in place, rows.sqlite
        holds the checksums of the old and of the new files.
        """
        files = {"settings.json": format_json(redact_settings(settings)), "program.neural": program}
        changed_texts = {
            file: text
            for file, text in files.items()
            if text is not None and text != read_text(self.path / file)
        }
        new_sums = {checksum_key(file): sha256_text(text) for file, text in changed_texts.items()}
        old_sums = {key: self._writer.header_value(key) for key in new_sums}
        both_sums = {
            key: f"{old_sums[key]} {new_sums[key]}" for key in new_sums if old_sums[key] is not None
        }
        self._writer.set_header_values(both_sums)
        with translate_errors(f"the settings of {self.path} cannot be written"):
            if has_secrets(settings):
                self.path.chmod(PRIVATE_FOLDER_MODE)
            for file, text in changed_texts.items():
                write_atomically(self.path / file, text)
        self._writer.set_header_values(new_sums)
        # these are cached properties: without their cached values they are read from the new files
        for name in ("settings", "program", "metadata_fields"):
            self.__dict__.pop(name, None)

    def delete_after(self, step: int) -> None:
        """Delete everything of later steps, which a resumed run writes again."""
        with translate_errors(f"{self.path} cannot be reset to step {step}"):
            # checkpoints first: rows without their checkpoint are harmless, the reverse is not
            checkpoint.delete_after(self.path / CHECKPOINTS_DIR, step)
        self._writer.delete_after(step)
        self._step = min(self._step, step)

    def heartbeat(self, step: int, **facts: Any) -> None:
        """Report progress; cheap: status.json is written every HEARTBEAT_SECONDS.

        `facts` (loss, best score, number of steps …) go into status.json, for the pages that show
        running trainings; each keeps its value until it is reported again.
        """
        self._step = step
        self._facts |= facts
        self._writer.commit_if_due()
        if time.monotonic() - self._last_heartbeat >= HEARTBEAT_SECONDS:
            self._last_heartbeat = time.monotonic()
            # a lost heartbeat must not stop training; writing rows will report a full disk
            with suppress(OSError):
                self._write_status("running", "", durable=False)

    @property
    def last_step(self) -> int:
        """The step of the last `heartbeat`."""
        return self._step

    def finish(self, state: str, message: str = "") -> None:
        """Commit, write the final state ("finished", "failed" or "stopped"), and close.

        If the rows cannot be written, the final state is "failed". An error of writing is raised as
        RunError after closing, unless the caller passed "failed": then it has an error of its own.
        """
        pending_error = None
        try:
            self.commit()
        except RunError as error:
            pending_error = None if state == "failed" else error
            state, message = "failed", message or str(error)
        try:
            with translate_errors(f"{self.path} cannot be finished"):
                self._write_status(state, message, durable=True)
        except RunError as error:
            pending_error = pending_error or (None if state == "failed" else error)
        self.close()
        if pending_error:
            raise pending_error

    def add_sinks(self, names: Iterable[str]) -> None:
        """Send scalars to other trackers too: `tensorboard`, `mlflow`, `wandb`, `trackio`."""
        try:
            self._sinks += [sinks.get(name)(self.name, self.path, self.settings) for name in names]
        except UnknownNameError as error:
            raise RunError(str(error)) from None

    def load_checkpoint(
        self, which: Literal["newest", "best"] | int = "newest"
    ) -> Checkpoint | None:
        """As `RunReader.load_checkpoint`; a writer also logs the damaged checkpoints it skipped."""
        loaded = super().load_checkpoint(which)
        if loaded is not None and self._lock:
            for message in loaded.skipped:
                self.log_event(loaded.step, "warning", message)
        return loaded

    def close(self) -> None:
        """Close the files and release the lock. A writer calls `finish` instead."""
        while self._sinks:
            with suppress(Exception):  # an external tracker must not stop training
                self._sinks.pop().close()
        try:
            super().close()
        finally:
            if self._lock:
                self._lock.release()

    @property
    def _writer(self) -> RunWriter:
        if not isinstance(self._store, RunWriter):
            raise RunError(f"{self.path} was opened for reading; `Run.reopen` opens it for writing")
        return self._store

    def _write_status(self, state: str, message: str, *, durable: bool) -> None:
        status = current_status(
            state,
            step=self._step,
            message=redact_text(message),
            started=self._started,
            facts=self._facts,
        )
        write_status(self.path / STATUS_FILE, status, durable=durable)

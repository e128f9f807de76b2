"""Copy a run folder, also while it is written; compare two copies of one run.

A copy is prepared in the hidden folder `.copy-<name>` beside its target and then renamed: the target
appears complete, or not at all. A copy that was killed continues with the files it had finished.

Order in a folder: checkpoints, rows, all other files. A checkpoint is never newer than its rows
(`Run.save`), so the rows that are read after it are complete for it, and the copy can resume.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from neural.core.errors import NeuralError
from neural.core.files import open_ordinary_file, read_small_file
from neural.core.platform_support import (
    CAN_MOVE_OPEN_FILES,
    lock_file,
    rename_folder,
    sync_file,
    sync_folder,
)
from neural.runs.checkpoint import find_tensor_file
from neural.runs.errors import DISK_FULL, RunError, advise_on_full_disk, translate_errors
from neural.runs.folder import (
    CHECKPOINTS_DIR,
    PRIVATE_FOLDER_MODE,
    ROWS_FILE,
    RUN_ID_KEY,
    STATUS_FILE,
    checksum_key,
    find_run_folder,
    load_status,
    verify_checksums,
)
from neural.runs.lock import RunLock
from neural.runs.status import write_status
from neural.runs.store import RunStore

Relation = Literal["other", "same", "newer", "older", "diverged"]
"""What a run is to another one: a different run; the same run in the same state; the same run with
more steps, or with fewer; or two copies of one run that were trained separately."""
LOCK_FILE = "lock"
STAGING_PREFIX, REPLACED_PREFIX = ".copy-", ".replaced-"
"""Prefixes of the hidden folders: a copy that is not complete, and the copy that it replaces."""
MAX_ATTEMPTS = 20
"""How often a copy starts again because the writer replaced files meanwhile."""
BLOCK_BYTES = 1 << 20
MAX_WAIT_SECONDS, POLL_SECONDS = 600.0, 0.1
"""How long a copy waits for another one to the same target, and how often it looks."""
NO_LOCK_ERRORS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
"""errno of file systems that have no locks."""
COPIED_WHILE_RUNNING = "copied while it was running"


class _SourceChangedError(NeuralError):
    """The writer replaced or deleted a file that was being copied."""


class RunProgress(NamedTuple):
    """How far a run is; the larger one of two copies is newer."""

    checkpoint_step: int
    last_step: int
    is_finished: bool
    heartbeat: float
    """Unix time of the last heartbeat."""


def copy_run(source: Path, target: Path) -> Relation | None:
    """Copy the run folder `source` to the path `target`, unless something newer is there.

    Returns what `source` was to the run at `target`, None if there was none. It was copied if this
    is None or "newer". RunError if the copy to be replaced is being written.

    A training may write `source` at the same time: the copy is the run at one instant, and can be
    resumed. All bytes of checkpoints are verified by their checksums. Files that only the replaced
    copy has, such as evaluation.json, are kept.
    """
    source, target = find_run_folder(source), target.absolute()
    staging = target.with_name(f"{STAGING_PREFIX}{target.name}")
    with (
        advise_on_full_disk("free some space and copy again; finished files are kept"),
        translate_errors(f"{source} cannot be copied to {target}"),
    ):
        if any(path.exists() and source.samefile(path) for path in (target, *target.parents)):
            raise RunError(f"{source} would be copied into itself; name another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock_copies(target):
            _recover_replaced(target)
            relation = compare_runs(source, find_run_folder(target)) if target.exists() else None
            if relation is None or relation == "newer":
                try:
                    _copy_settled(source, staging, target)
                    _publish(staging, target)
                except RunError as error:
                    # after a full disk, the next copy continues with the finished files
                    if DISK_FULL not in str(error):
                        shutil.rmtree(staging, ignore_errors=True)
                    raise
    return relation


def compare_runs(path: Path, other: Path) -> Relation:
    """What the run folder `path` is to the run folder `other`."""
    with closing(RunStore(path / ROWS_FILE)) as store, closing(RunStore(other / ROWS_FILE)) as base:
        if read_run_id(path, store) != read_run_id(other, base):
            return "other"
        progress, base_progress = read_progress(path, store), read_progress(other, base)
        # Later rows may differ without harm: a resumed run writes them again.
        common_step = min(progress.checkpoint_step, base_progress.checkpoint_step)
        if _hash_scalars(store, common_step) != _hash_scalars(base, common_step):
            return "diverged"
    if progress != base_progress:
        return "newer" if progress > base_progress else "older"
    return "same" if _list_times(path).items() <= _list_times(other).items() else "newer"


def read_run_id(path: Path, store: RunStore) -> str:
    """Identity of a run, the same in all copies."""
    run_id = store.header_value(RUN_ID_KEY)
    if run_id is not None:
        return run_id
    # written before there were ids: machine, command line and start time tell runs apart
    environment = store.header_value(checksum_key("environment.json")) or ""
    return hashlib.sha256(f"{environment} {load_status(path).started!r}".encode()).hexdigest()


def read_progress(path: Path, store: RunStore) -> RunProgress:
    """How far the run in a folder is."""
    step = store.header_value("checkpoint_step") or "0"
    if not step.isdecimal() or len(step) > 18:
        raise RunError(f"{path}: rows.sqlite is damaged: checkpoint_step is {step[:40]}")
    status = load_status(path)
    return RunProgress(int(step), store.last_step(), status.state == "finished", status.time)


def _copy_settled(source: Path, staging: Path, target: Path) -> None:
    """Copy until the writer changed nothing in between that must fit together."""
    for _ in range(MAX_ATTEMPTS):
        try:
            _copy_run_files(source, staging, target)
        except _SourceChangedError:
            continue
        _keep_other_files(staging, target)
        return
    raise RunError(f"{source} changes faster than it can be copied; try again later")


def _copy_run_files(source: Path, staging: Path, previous: Path) -> None:
    """Copy one run folder and the runs inside it (members of an ensemble) into `staging`.

    `previous` is an older copy that may have some of the files already.
    """
    find_run_folder(source)  # refuses links out of the folder
    with closing(RunStore(source / ROWS_FILE)) as store:  # refuses other versions
        # private until the mode of the source is set
        staging.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
        file_names = _copy_checkpoints(
            source / CHECKPOINTS_DIR, staging / CHECKPOINTS_DIR, previous / CHECKPOINTS_DIR
        )
        store.copy_to(staging / ROWS_FILE)
    _sync_file(staging / ROWS_FILE)
    expected_names = {ROWS_FILE, CHECKPOINTS_DIR, LOCK_FILE}
    for entry in _list_entries(source):
        # `copy_to` has included the write-ahead log, rows.sqlite-wal and -shm
        if entry.name in expected_names or entry.name.startswith(f"{ROWS_FILE}-"):
            continue
        expected_names.add(entry.name)
        if entry.name == STATUS_FILE:
            _copy_status(source, staging)
        else:
            _copy_entry(entry, staging / entry.name, previous / entry.name)
    (staging / LOCK_FILE).touch()
    _remove_others(staging / CHECKPOINTS_DIR, file_names)
    _remove_others(staging, expected_names)
    staging.chmod(source.stat().st_mode & 0o777 | 0o700)  # private runs stay private
    with closing(RunStore(staging / ROWS_FILE)) as store:
        store.check_structure()
        try:
            verify_checksums(staging, store)
        except RunError as error:
            with closing(RunStore(source / ROWS_FILE)) as source_store:
                verify_checksums(source, source_store)  # the source itself is damaged
            raise _SourceChangedError from error
    for folder in (staging / CHECKPOINTS_DIR, staging):
        sync_folder(folder)


def _copy_checkpoints(source: Path, staging: Path, previous: Path) -> set[str]:
    """Copy the checkpoints and verify them; returns the names of all their files.

    A damaged checkpoint is copied as it is: it is not made worse, and readers report it.
    """
    staging.mkdir(exist_ok=True)
    file_names: set[str] = set()
    for json_path in sorted(source.glob("step-*.json")) if source.is_dir() else ():
        try:
            data = read_small_file(json_path)
        except FileNotFoundError:
            raise _SourceChangedError from None
        entry = find_tensor_file(data, json_path.stem)
        if entry is not None:
            name, sha256 = entry
            digest = _copy_file(source / name, staging / name, previous / name, sha256)
            if digest != sha256 and read_small_file(json_path) != data:
                raise _SourceChangedError
            file_names.add(name)
        (staging / json_path.name).write_bytes(data)
        with suppress(FileNotFoundError):
            shutil.copystat(json_path, staging / json_path.name)
        _sync_file(staging / json_path.name)
        file_names.add(json_path.name)
    return file_names


def _copy_entry(entry: os.DirEntry[str], staging: Path, previous: Path) -> None:
    """Copy a file or folder beside the rows; a folder with rows is a run of its own."""
    path = Path(entry.path)
    if not entry.is_dir():
        _copy_file(path, staging, previous)
    elif (path / ROWS_FILE).exists():
        _copy_run_files(path, staging, previous)
    else:
        staging.mkdir(exist_ok=True)
        names = set()
        for child in _list_entries(path):
            names.add(child.name)
            _copy_entry(child, staging / child.name, previous / child.name)
        _remove_others(staging, names)
        sync_folder(staging)


def _copy_status(source: Path, staging: Path) -> None:
    """Write the status of the copy: nothing writes it, so it is not running."""
    status = load_status(source)
    if status.state == "running":
        status = replace(status, state="stopped", message=COPIED_WHILE_RUNNING)
    write_status(staging / STATUS_FILE, status, durable=True)


def _copy_file(source: Path, staging: Path, previous: Path, sha256: str | None = None) -> str:
    """Copy a file unless a complete copy is there; returns the SHA-256 of the bytes on the disk.

    `sha256` is the expected checksum, where it is known. A file of the `previous` copy with the
    same bytes is linked, not copied.
    """
    try:
        sha256 = sha256 or _hash_file(source)
        if staging.exists() and _hash_file(staging) == sha256:
            shutil.copystat(source, staging)  # the copy may have been killed just before this
            return sha256
        staging.unlink(missing_ok=True)
        if previous.is_file() and _hash_file(previous) == sha256:
            with suppress(OSError):  # not every file system has hard links
                os.link(previous, staging)
                return sha256
        with open_ordinary_file(source) as reader, staging.open("wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK_BYTES)
            writer.flush()
            sync_file(writer.fileno())
        shutil.copystat(source, staging)
    except FileNotFoundError:
        raise _SourceChangedError from None
    return _hash_file(staging)


def _keep_other_files(staging: Path, target: Path) -> None:
    """Take over the files of the replaced copy that the new one does not have.

    They were made from the copy: an evaluation, a report.
    """
    if not target.is_dir():
        return
    for entry in _list_entries(target):
        destination = staging / entry.name
        if not destination.exists() and not entry.name.startswith(ROWS_FILE):
            _copy_entry(entry, destination, Path(entry.path))


def _publish(staging: Path, target: Path) -> None:
    """Give the complete copy its name. A kill in between leaves the old copy, the new one, or none.

    The old copy is then hidden under REPLACED_PREFIX, and the next `copy_run` restores it.
    """
    replaced = target.with_name(f"{REPLACED_PREFIX}{target.name}")
    if not target.exists():
        rename_folder(staging, target)
        sync_folder(target.parent)
        return
    lock = RunLock.acquire(target / LOCK_FILE, load_status(target))
    try:
        if not CAN_MOVE_OPEN_FILES:
            lock.release()
        rename_folder(target, replaced)
        rename_folder(staging, target)
        sync_folder(target.parent)
    finally:
        lock.release()
    shutil.rmtree(replaced, ignore_errors=True)


def _recover_replaced(target: Path) -> None:
    """Undo or finish the replacement that a killed copy had begun."""
    replaced = target.with_name(f"{REPLACED_PREFIX}{target.name}")
    if not replaced.is_dir():
        return
    if target.exists():
        shutil.rmtree(replaced)
    else:
        rename_folder(replaced, target)


@contextmanager
def _lock_copies(target: Path) -> Iterator[None]:
    """Wait until no other process copies to `target`, and keep others away inside the block.

    The lock file is beside the target: it must exist before the target does. Without locks, as some
    network disks are, nothing is waited for.
    """
    lock_path = target.with_name(f"{STAGING_PREFIX}{target.name}.lock")
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock_file(descriptor)
            # the process before this one may have deleted the file after it was opened here
            if lock_path.exists() and os.path.samestat(os.fstat(descriptor), lock_path.stat()):
                break
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise RunError(
                    f"another process has been copying to {target} for {MAX_WAIT_SECONDS:.0f} s"
                ) from None
            time.sleep(POLL_SECONDS)
        except OSError as error:
            if error.errno in NO_LOCK_ERRORS:
                break
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        if CAN_MOVE_OPEN_FILES:
            lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Files and folders in a folder, sorted; without temporary files, pipes and devices."""
    entries = []
    with os.scandir(folder) as scanned:
        for entry in scanned:
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                raise RunError(f"{entry.path} is a link; it is not followed. Remove it, or copy it")
            if entry.is_dir() or entry.is_file():
                entries.append(entry)
    return sorted(entries, key=lambda entry: entry.name)


def _remove_others(folder: Path, names: set[str]) -> None:
    """Delete what an earlier attempt has left in a folder: all but `names`."""
    for path in folder.iterdir():
        if path.name not in names:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _list_times(path: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of the files in a run folder, by name; without rows and status.

    `RunProgress` covers those two.
    """
    times = {}
    for folder, folder_names, names in os.walk(path):
        folder_names[:] = [name for name in folder_names if not name.startswith(".")]
        for name in names:
            if name.startswith((ROWS_FILE, ".")) or name in (STATUS_FILE, LOCK_FILE):
                continue
            file = Path(folder, name)
            with suppress(FileNotFoundError):
                file_stat = file.stat()
                times[str(file.relative_to(path))] = (file_stat.st_size, file_stat.st_mtime_ns)
    return times


def _hash_scalars(store: RunStore, last_step: int) -> str:
    """SHA-256 of all scalars up to a step."""
    digest = hashlib.sha256()
    for step, name, value in store.scalar_rows():
        if step <= last_step:
            digest.update(json.dumps([step, name, value.hex()]).encode())
    return digest.hexdigest()


def _hash_file(path: Path) -> str:
    with open_ordinary_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_file(path: Path) -> None:
    """Wait until the file is on the disk."""
    with path.open("rb+") as file:
        sync_file(file.fileno())

"""Who writes a run, how far it is, and whether anybody is still there.

`status.json` is a small file in place of the last one, every few seconds. A killed process cannot say that it is gone:
its status stays "running", and a reader who finds nobody behind it says "lost". The lock is what makes the writer the
only one; the system takes it away from a process that dies, however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from neural.core.files import write_atomically
from neural.core.plain_json import read_json
from neural.tracking.trouble import RunError, in_words

SILENCE = 120.0
"""Seconds without a heartbeat after which a run on another machine counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a run: running, finished, failed, stopped, or lost."""

    state: str
    step: int = 0
    message: str = ""
    time: float = 0.0
    """Of the last sign of life, in seconds since 1970; `started` likewise."""
    started: float = 0.0
    pid: int = 0
    host: str = ""
    process: str | None = None
    """Tells two processes with the same number apart, where the system can."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the writer wished to be seen from outside: speed, time left, `best`."""

    @property
    def best(self) -> Any:
        """The best score so far, as the writer says it, or None."""
        return self.facts.get("best")

    def as_seen_now(self) -> Status:
        """The same, but "lost" where it says "running" and nobody runs it."""
        if self.state != "running" or self._alive():
            return self
        return replace(self, state="lost")

    def _alive(self) -> bool:
        recent = time.time() - self.time < SILENCE
        if self.host != socket.gethostname():
            return recent
        now = process(self.pid)
        if now is not None and self.process is not None:
            return now == self.process   # it may be silent for long: a validation, a compilation
        return _exists(self.pid) and recent


def read_status(text: str) -> Status:
    """From the text of a status file; a power cut may have left an empty one, which says nothing: lost."""
    try:
        return status_from(read_json(text)).as_seen_now()
    except (ValueError, TypeError):
        return Status(state="lost", message="its status cannot be read")


def status_from(found: Any) -> Status:
    """From plain data, of whatever version; ValueError or TypeError where it is of other kinds."""
    known = {name: found[name] for name in Status.__dataclass_fields__ if name in found}
    for name, value in known.items():
        if not _fits(name, value):
            raise ValueError(f"{name} is {value!r:.40}")
    return Status(**known)


def _fits(name: str, value: Any) -> bool:
    if name in ("step", "pid"):
        return type(value) is int and abs(value) < 1 << 53
    if name in ("time", "started"):
        return type(value) in (int, float) and abs(value) < 1e15
    return isinstance(value, dict if name == "facts" else str | None if name == "process" else str)


def write_status(path: Path, status: Status, *, durable: bool) -> None:
    """In place of the last one."""
    write_atomically(path, json.dumps(asdict(status), indent=1) + "\n", durable=durable)


def mine(state: str, **more: Any) -> Status:
    """A status of this process, now."""
    me = os.getpid()
    return Status(state=state, time=time.time(), pid=me, host=socket.gethostname(), process=process(me), **more)


def process(pid: int) -> str | None:
    """What tells this process from an earlier one of the same number: when it started, and the boot before that."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if started[0] == "Z" else f"{boot}:{started[19]}"   # a zombie is dead, but for its number


class Lock:
    """The right to write a run; given back by `release`, or by the system when the process ends."""

    _here: set[tuple[int, int]] = set()
    """Those of this process: the system lets a process lock a file twice, and drop both locks at once."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        about = os.fstat(self._handle)
        self._file = (about.st_dev, about.st_ino)
        try:
            # not flock: a child that outlives us (a data worker) would go on holding that one
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._handle)
            raise
        Lock._here.add(self._file)

    @classmethod
    def take(cls, path: Path, status: Status) -> Lock:
        """The lock at that path; RunError if somebody has it, who is named as the status says."""
        with in_words(f"{path.parent} cannot be written"):
            taken = path.exists() and (path.stat().st_dev, path.stat().st_ino) in cls._here
            try:
                if not taken:
                    return cls(path)
            except (BlockingIOError, PermissionError):
                if not os.access(path, os.W_OK):
                    raise
        who = "this process" if taken else f"process {status.pid} on {status.host}"
        raise RunError(f"{path.parent} is being written by {who}; wait for it to end, or stop it first")

    def release(self) -> None:
        """Let others write."""
        if self._file in Lock._here:
            Lock._here.remove(self._file)
            os.close(self._handle)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:   # somebody else's, but there
        return True
    return True

"""Status of a run: state, step, heartbeat, and the process that writes it.

`status.json` is replaced every few seconds. A killed process cannot update it: its status remains
"running". A reader that finds no such process reports "lost".
"""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from neural.core.files import write_atomically
from neural.core.json_values import parse_json
from neural.core.platform_support import process_exists, process_identity

LOST_AFTER_SECONDS = 120.0
"""Seconds without a heartbeat after which a run on another machine counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The state of a run: running, finished, failed, stopped, or lost."""

    state: str
    step: int = 0
    """Last reported step."""
    message: str = ""
    """Reason of the state, for the user."""
    time: float = 0.0
    """Last heartbeat, in seconds since 1970; `started` likewise."""
    started: float = 0.0
    pid: int = 0
    host: str = ""
    process: str | None = None
    """`process_identity` of the writer, to recognise a reused pid; None if unavailable."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further values that `Run.heartbeat` reports: loss, speed, time left, `best`."""

    @property
    def best(self) -> Any:
        """The best score so far, as the writer reported it, or None."""
        return self.facts.get("best")

    def check_alive(self) -> RunStatus:
        """This status, with "running" replaced by "lost" if the process is gone."""
        if self.state != "running" or self._is_alive():
            return self
        return replace(self, state="lost")

    def _is_alive(self) -> bool:
        is_recent = time.time() - self.time < LOST_AFTER_SECONDS
        if self.host != socket.gethostname():
            return is_recent
        identity = process_identity(self.pid)
        if identity is not None and self.process is not None:
            # a validation or a compilation may delay heartbeats for long: their age does not count
            return identity == self.process
        return process_exists(self.pid) and is_recent


def parse_status(text: str) -> RunStatus:
    """Parse status.json. Text that cannot be read is "lost": a power failure may leave it empty."""
    try:
        return status_from_dict(parse_json(text)).check_alive()
    except (ValueError, TypeError):
        return RunStatus(state="lost", message="its status cannot be read")


def status_from_dict(data: Any) -> RunStatus:
    """Build a status from JSON data, ignoring unknown keys; ValueError, TypeError on bad types."""
    known = {name: data[name] for name in RunStatus.__dataclass_fields__ if name in data}
    for name, value in known.items():
        if not _is_valid_field(name, value):
            raise ValueError(f"{name} is {value!r:.40}")
    return RunStatus(**known)


def _is_valid_field(name: str, value: Any) -> bool:
    if name in ("step", "pid"):
        return type(value) is int and abs(value) < 1 << 53  # exact in JavaScript, too
    if name in ("time", "started"):
        return type(value) in (int, float) and abs(value) < 1e15  # also excludes NaN
    return isinstance(value, dict if name == "facts" else str | None if name == "process" else str)


def write_status(path: Path, status: RunStatus, *, durable: bool) -> None:
    """Replace status.json atomically; `durable` waits for the disk."""
    write_atomically(path, json.dumps(asdict(status), indent=1) + "\n", durable=durable)


def current_status(state: str, **fields: Any) -> RunStatus:
    """A status of this process, with the present time; `fields` are other fields of RunStatus."""
    pid = os.getpid()
    return RunStatus(
        state=state,
        time=time.time(),
        pid=pid,
        host=socket.gethostname(),
        process=process_identity(pid),
        **fields,
    )

"""Rendezvous of the processes that torchrun starts, safe against processes of an earlier attempt.

An attempt is one start of all processes; after a crash torchrun starts them again.
Torchrun keeps one key-value store for all its attempts. A process that is restarted may read the
address of a dead process from it, fail, and use up the restarts. So rank 0 first opens a new
session (a random key prefix) for each attempt. Every other rank writes a nonce under the session it
finds; rank 0 acknowledges it by writing it back. A session without acknowledgement is an old one.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from neural.core.errors import TaskError
from neural.nn.lazy_torch import lazy_import

if TYPE_CHECKING:
    from torch.distributed import Store

distributed = lazy_import("torch.distributed")
rendezvous = lazy_import("torch.distributed.rendezvous")

RENDEZVOUS_TIMEOUT_SECONDS = 600.0
"""How long a process waits for the others; another machine may still be reading its data."""
POLL_SECONDS = 0.02
SESSION_KEY = "session"
"""Key of the store with the newest session."""


def join_rendezvous() -> tuple[Store, int, int]:
    """Returns a store for this attempt alone, this process's rank, and the number of processes."""
    store, rank, size = next(
        rendezvous.rendezvous("env://", timeout=timedelta(seconds=RENDEZVOUS_TIMEOUT_SECONDS))
    )
    session = open_rendezvous(store, size) if rank == 0 else enter_rendezvous(store, rank)
    return distributed.PrefixStore(session, store), rank, size


def open_rendezvous(store: Store, size: int) -> str:
    """Open a session as rank 0 of `size` processes and acknowledge all others.

    Returns the session, a key prefix.
    """
    session = uuid4().hex
    store.set(SESSION_KEY, session)
    for rank in range(1, size):
        store.wait([f"{session}/{rank}"], timedelta(seconds=RENDEZVOUS_TIMEOUT_SECONDS))
        store.set(f"{session}/{rank}/welcome", store.get(f"{session}/{rank}").decode())
    return session


def enter_rendezvous(store: Store, rank: int) -> str:
    """Find the session of this attempt's rank 0 and return it.

    It is the one in which rank 0 acknowledges this process: a dead rank 0 cannot.
    """
    nonce = uuid4().hex
    deadline = time.monotonic() + RENDEZVOUS_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if store.check([SESSION_KEY]):
            session = store.get(SESSION_KEY).decode()
            store.set(f"{session}/{rank}", nonce)
            acknowledgement = f"{session}/{rank}/welcome"
            if store.check([acknowledgement]) and store.get(acknowledgement).decode() == nonce:
                return session
        time.sleep(POLL_SECONDS)
    raise TaskError(
        f"process {rank} waited {RENDEZVOUS_TIMEOUT_SECONDS:.0f} s for process 0: is it running?"
    )

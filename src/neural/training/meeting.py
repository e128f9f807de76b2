"""How processes that torchrun starts again find one another, and not those who died.

Torchrun keeps one store for all its attempts. A process that comes back may read the address of one
that is no longer there, fail, and use up the restarts. Here everyone first agrees on a new room: the first
process opens it, and tells each of the others by a word that only this process can have said.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from neural.modules.late import late
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch.distributed import Store

distributed = late("torch.distributed")
rendezvous = late("torch.distributed.rendezvous")

PATIENCE = 600.0  # seconds: another machine may still be reading its data
PAUSE = 0.02


def met() -> tuple[Store, int, int]:
    """A store of this attempt alone, this process's number, and how many there are."""
    store, rank, count = next(rendezvous.rendezvous("env://", timeout=timedelta(seconds=PATIENCE)))
    room = opened(store, count) if rank == 0 else entered(store, rank)
    return distributed.PrefixStore(room, store), rank, count


def opened(store: Store, count: int) -> str:
    """A new room, when everyone is in it."""
    room = uuid4().hex
    store.set("room", room)
    for rank in range(1, count):
        store.wait([f"{room}/{rank}"], timedelta(seconds=PATIENCE))
        store.set(f"{room}/{rank}/welcome", store.get(f"{room}/{rank}").decode())
    return room


def entered(store: Store, rank: int) -> str:
    """The room in which the first process has greeted this one; older rooms give no answer."""
    word = uuid4().hex
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if store.check(["room"]):
            room = store.get("room").decode()
            store.set(f"{room}/{rank}", word)
            welcome = f"{room}/{rank}/welcome"
            if store.check([welcome]) and store.get(welcome).decode() == word:
                return room
        time.sleep(PAUSE)
    raise TaskError(f"process {rank} waited {PATIENCE:.0f} s for the first one: is it running?")

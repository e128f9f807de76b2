"""Processes of one attempt meet in a room of their own, whatever earlier attempts left behind."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from torch.distributed import HashStore

from neural.tasks.task import TaskError
from neural.training import meeting
from neural.training.meeting import entered, opened


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(meeting, "PATIENCE", 5.0)


def attempt(store: HashStore, first_is_late: bool) -> set[str]:
    """The rooms in which three processes find themselves."""
    with ThreadPoolExecutor() as pool:
        others = [pool.submit(entered, store, rank) for rank in (1, 2)] if first_is_late else []
        sleep(0.2 * first_is_late)
        first = pool.submit(opened, store, 3)
        others = others or [pool.submit(entered, store, rank) for rank in (1, 2)]
        return {one.result(timeout=20) for one in [first, *others]}


@pytest.mark.parametrize("late", [False, True])
def test_every_attempt_has_one_new_room(late):
    store = HashStore()
    rooms = [attempt(store, late) for _ in range(3)]
    assert all(len(one) == 1 for one in rooms)
    assert len(set.union(*rooms)) == 3


def test_a_room_whose_host_died_is_left():
    store = HashStore()
    store.set("room", "old")                       # opened, and then its host was killed
    store.set("old/1/welcome", "somebody else")    # who had been there
    assert len(attempt(store, first_is_late=True)) == 1


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(meeting, "PATIENCE", 0.1)
    with pytest.raises(TaskError, match="process 1 waited"):
        entered(HashStore(), 1)

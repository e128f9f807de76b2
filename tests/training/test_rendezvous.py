"""Processes of one attempt share a new session, whatever earlier attempts left in the store."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from torch.distributed import HashStore

from neural.core.errors import TaskError
from neural.training import rendezvous
from neural.training.rendezvous import enter_rendezvous, open_rendezvous


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch):
    monkeypatch.setattr(rendezvous, "RENDEZVOUS_TIMEOUT_SECONDS", 5.0)


def run_attempt(store: HashStore, first_is_late: bool) -> set[str]:
    """The sessions that three processes join."""
    with ThreadPoolExecutor() as pool:
        others = (
            [pool.submit(enter_rendezvous, store, rank) for rank in (1, 2)] if first_is_late else []
        )
        sleep(0.2 * first_is_late)
        first = pool.submit(open_rendezvous, store, 3)
        others = others or [pool.submit(enter_rendezvous, store, rank) for rank in (1, 2)]
        return {future.result(timeout=20) for future in [first, *others]}


@pytest.mark.parametrize("late", [False, True])
def test_every_attempt_has_one_new_session(late):
    store = HashStore()
    attempts = [run_attempt(store, late) for _ in range(3)]
    assert all(len(sessions) == 1 for sessions in attempts)
    assert len(set.union(*attempts)) == 3


def test_a_session_of_a_dead_process_is_left():
    store = HashStore()
    store.set("session", "old")  # opened by a rank 0 that was then killed
    store.set("old/1/welcome", "another nonce")
    assert len(run_attempt(store, first_is_late=True)) == 1


def test_waiting_for_process_0_times_out(monkeypatch):
    monkeypatch.setattr(rendezvous, "RENDEZVOUS_TIMEOUT_SECONDS", 0.1)
    with pytest.raises(TaskError, match="process 1 waited"):
        enter_rendezvous(HashStore(), 1)

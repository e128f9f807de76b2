"""Small networks use one thread, unless the user has chosen a number."""

import os

import pytest
import torch

import neural
from neural.training.cpu_threads import MIN_PARALLEL_WORK, count_work, use_threads_for

CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def create_model(units):
    layers = f'Dense({units}, activation="relu") Output(3, activation="softmax")'
    return neural.parse(f"network N {{ input: (20,) layers: {layers} }}").build()


@pytest.fixture(autouse=True)
def default_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    previous = torch.get_num_threads()
    torch.set_num_threads(CPUS)
    yield
    torch.set_num_threads(previous)


def threads_inside(model, batch_size=32):
    with use_threads_for(model, batch_size):
        return torch.get_num_threads()


def test_a_small_network_uses_one_thread_and_a_large_one_all():
    small, large = create_model(8), create_model(4096)
    assert count_work(small, 32) == 32 * (20 * 8 + 8 + 8 * 3 + 3)
    assert count_work(small, 32) < MIN_PARALLEL_WORK < count_work(large, 64)
    assert threads_inside(small) == 1
    assert threads_inside(large, 64) == CPUS
    assert threads_inside(torch.nn.Linear(2, 2)) == CPUS  # its input shape is not known
    assert torch.get_num_threads() == CPUS


def test_the_number_is_restored_after_an_error():
    with pytest.raises(ValueError, match="stop"), use_threads_for(create_model(8), 32):
        raise ValueError("stop")
    assert torch.get_num_threads() == CPUS


def test_a_number_that_the_user_has_set_stays(monkeypatch):
    torch.set_num_threads(CPUS + 1)
    assert threads_inside(create_model(8)) == CPUS + 1
    torch.set_num_threads(CPUS)
    monkeypatch.setenv("OMP_NUM_THREADS", str(CPUS))
    assert threads_inside(create_model(8)) == CPUS

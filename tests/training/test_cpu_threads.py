"""Small networks use one thread, unless the user has chosen a number."""

import math
import os

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

import neural
from neural.optim.catalogue import CATALOGUE
from neural.sklearn import NetworkClassifier
from neural.tasks.captions.task import Captions
from neural.tasks.focus.task import Focus
from neural.tasks.language_model.task import LanguageModel
from neural.tasks.segmentation.task import Segmentation
from neural.tasks.supervised.task import Supervised
from neural.tasks.task import count_positions
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


def threads_inside(model, positions=32):
    with use_threads_for(model, positions):
        return torch.get_num_threads()


def test_a_small_network_uses_one_thread_and_a_large_one_all():
    small, large = create_model(8), create_model(4096)
    assert count_work(small, 32) == 32 * (20 * 8 + 8 + 8 * 3 + 3)
    assert threads_inside(small) == 1
    assert count_work(large, 64) > MIN_PARALLEL_WORK
    assert threads_inside(large, 64) == CPUS
    assert torch.get_num_threads() == CPUS


def test_positions_are_rows_tokens_and_pixels():
    labels = torch.zeros(32, dtype=torch.int64)
    assert count_positions([torch.zeros(32, 20), labels]) == 32
    assert count_positions([torch.zeros(32, 20, dtype=torch.int64), labels]) == 32 * 20
    assert count_positions([torch.zeros(32, 28, 28, 3), labels, torch.zeros(32)]) == 32 * 28 * 28


@pytest.mark.parametrize("task", [Segmentation, Captions, LanguageModel, Supervised])
def test_the_work_of_every_task_is_known(task, tmp_path):
    task = task.example(tmp_path, CATALOGUE)
    x = task.batch(0)["x"]
    positions = task.count_positions(task.batch(0))
    # sentences of documents, segments of pictures, tokens, rows of windows
    assert positions >= math.prod(x.shape[:-1] if x.is_floating_point() else x.shape)
    assert count_work(task.build(), positions) > 0


def test_segments_that_examples_share_count_once_with_all_their_positions(tmp_path):
    task = Focus.example(tmp_path, CATALOGUE)
    batch = task.batch(0)  # numbers of segments
    units = task.data.splits["train"].unit_bank
    positions = math.prod(units.shape[1:-1])
    assert task.count_positions(batch) == len(batch["members"].unique()) * positions


TEXTS = """
network Words {
  input: (None,)
  layers: Embedding(2000, 8) GlobalAveragePooling1D() Output(2, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


@pytest.mark.parametrize(("length", "threads"), [(12, 1), (12_000, CPUS)])
def test_texts_of_free_length_are_counted_by_their_tokens(length, threads):
    model = neural.parse(TEXTS).build()
    positions = count_positions([torch.ones(32, length, dtype=torch.int64), torch.ones(32)])
    # the table of 2,000 words is not multiplied
    assert count_work(model, positions) == 32 * length * (8 * 2 + 2)
    assert threads_inside(model, positions) == threads


@pytest.fixture
def passes():
    """Number of threads in each forward pass of a network of two layers."""
    numbers = []

    def record(module, inputs):
        if isinstance(module, torch.nn.Linear):
            numbers.append(torch.get_num_threads())

    with register_module_forward_pre_hook(record):
        yield numbers


@pytest.mark.parametrize("is_text", [False, True])
def test_a_small_network_is_trained_and_used_by_one_thread(is_text, passes):
    generator = np.random.default_rng(0)
    X = generator.integers(1, 50, (40, 6)) if is_text else generator.normal(size=(40, 6))
    network = NetworkClassifier(TEXTS if is_text else None, steps=2)
    network.fit(X, np.arange(40) % 2)
    assert passes and set(passes) == {1}
    assert torch.get_num_threads() == CPUS
    passes.clear()
    network.predict(X)
    assert passes and set(passes) == {1}
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

"""Splits and batches are functions of the seed and the batch index alone."""

import numpy as np
import pytest

from neural.data.sampler import BatchSampler, split_indices


def test_an_epoch_holds_every_example_once_but_for_a_short_last_batch():
    sampler = BatchSampler(np.arange(100, 117), 5, seed=1)
    assert sampler.batches_per_epoch == 3
    for epoch in range(4):
        indices = np.concatenate([sampler[epoch * 3 + position] for position in range(3)])
        assert len(set(indices.tolist())) == 15
        assert set(indices.tolist()) <= set(range(100, 117))


def test_every_epoch_and_every_seed_has_a_different_order():
    orders = [
        BatchSampler(np.arange(50), 50, seed)[epoch].tolist()
        for seed in (0, 1, 2**31)
        for epoch in (0, 1, 2)
    ]
    assert len({tuple(order) for order in orders}) == 9


def test_a_batch_does_not_depend_on_earlier_batches():
    first, second = BatchSampler(np.arange(23), 4, seed=7), BatchSampler(np.arange(23), 4, seed=7)
    forward = [first[index].tolist() for index in range(17)]
    backward = [second[index].tolist() for index in reversed(range(17))]
    assert forward == backward[::-1]


def test_fewer_examples_than_a_batch_are_one_short_batch():
    sampler = BatchSampler(np.arange(3), 8, seed=0)
    assert sampler.batches_per_epoch == 1
    assert sorted(sampler[0]) == sorted(sampler[1]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("count", "share", "held_out"),
    [(100, 0.1, 10), (100, 0.0, 0), (5, 0.01, 1), (2, 0.99, 1), (1, 0.5, 0)],
)
def test_a_share_is_held_out_and_something_is_left(count, share, held_out):
    train, valid = split_indices(count, share, seed=3, ordered=False)
    assert len(valid) == held_out
    assert sorted([*train, *valid]) == list(range(count))


def test_the_split_depends_on_the_seed_and_ordered_data_is_split_at_the_end():
    assert (
        split_indices(60, 0.2, seed=1, ordered=False)[1].tolist()
        == split_indices(60, 0.2, seed=1, ordered=False)[1].tolist()
    )
    assert (
        split_indices(60, 0.2, seed=1, ordered=False)[1].tolist()
        != split_indices(60, 0.2, seed=2, ordered=False)[1].tolist()
    )
    assert split_indices(60, 0.2, seed=1, ordered=True)[1].tolist() == list(range(48, 60))

"""Which examples are held out, and which make which batch: functions of the seed and a number, and of nothing else."""

import numpy as np
import pytest

from neural.tasks.data.order import Order
from neural.tasks.data.split import split


def test_an_epoch_holds_every_example_once_but_for_a_short_last_batch():
    order = Order(np.arange(100, 117), 5, seed=1)
    assert order.epoch == 3
    for epoch in range(4):
        seen = np.concatenate([order[epoch * 3 + place] for place in range(3)])
        assert len(set(seen.tolist())) == 15
        assert set(seen.tolist()) <= set(range(100, 117))


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    orders = [Order(np.arange(50), 50, seed)[epoch].tolist() for seed in (0, 1, 2**31) for epoch in (0, 1, 2)]
    assert len({tuple(one) for one in orders}) == 9


def test_a_batch_does_not_depend_on_what_was_asked_before():
    one, other = Order(np.arange(23), 4, seed=7), Order(np.arange(23), 4, seed=7)
    forward = [one[index].tolist() for index in range(17)]
    backward = [other[index].tolist() for index in reversed(range(17))]
    assert forward == backward[::-1]


def test_fewer_examples_than_a_batch_are_one_short_batch():
    order = Order(np.arange(3), 8, seed=0)
    assert order.epoch == 1
    assert sorted(order[0]) == sorted(order[1]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("count", "share", "held"), [(100, 0.1, 10), (100, 0.0, 0), (5, 0.01, 1), (2, 0.99, 1), (1, 0.5, 0)]
)
def test_a_share_is_held_out_and_something_is_left(count, share, held):
    train, valid = split(count, share, seed=3, ordered=False)
    assert len(valid) == held
    assert sorted([*train, *valid]) == list(range(count))


def test_the_split_follows_the_seed_and_what_has_an_order_is_cut_once():
    assert split(60, 0.2, seed=1, ordered=False)[1].tolist() == split(60, 0.2, seed=1, ordered=False)[1].tolist()
    assert split(60, 0.2, seed=1, ordered=False)[1].tolist() != split(60, 0.2, seed=2, ordered=False)[1].tolist()
    assert split(60, 0.2, seed=1, ordered=True)[1].tolist() == list(range(48, 60))

"""Documents in batches."""

import numpy as np
import torch

from neural.tasks.cutting.packed import ByLength, Example, in_batches, packed


def example(length, document=0):
    x = np.arange(length * 2, dtype=np.float32).reshape(length, 2)
    return Example(document, 0, x, np.arange(length) % 2, np.arange(length) % 3 == 2)


def test_shorter_rows_are_filled_up_and_masked():
    batch = packed([example(2, 7), example(4, 3)])
    assert batch["x"].shape == (2, 4, 2)
    assert batch["mask"].tolist() == [[True, True, False, False], [True] * 4]
    assert batch["target"].tolist() == [[0, 1, 0, 0], [0, 1, 0, 1]]
    assert batch["boundaries"].tolist() == [[False] * 4, [False, False, True, False]]
    assert batch["document"].tolist() == [7, 3]
    assert (batch["x"][0, 2:] == 0).all()
    assert batch["x"].dtype == torch.float32


def test_long_documents_come_in_pieces_that_join_to_the_whole():
    whole = example(11)
    pieces = list(whole.pieces(4))
    assert [len(one) for one in pieces] == [3, 4, 4]
    assert [one.first for one in pieces] == [0, 3, 7]
    for name in ("x", "target", "boundaries"):
        np.testing.assert_array_equal(np.concatenate([getattr(one, name) for one in pieces]), getattr(whole, name))
    assert [len(one) for one in whole.pieces(11)] == [11]


def test_an_epoch_goes_once_through_and_lengths_go_together():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 500, 64)
    order = ByLength(lengths, 4, seed=5)
    epoch = [order[number] for number in range(order.epoch)]
    assert sorted(np.concatenate(epoch)) == list(range(64))
    spread = np.mean([np.ptp(lengths[one]) for one in epoch])
    plain = np.mean([np.ptp(lengths[random.permutation(64)[:4]]) for _ in range(200)])
    assert spread < plain / 3
    assert [lengths[one].max() for one in epoch] != sorted(lengths[one].max() for one in epoch)


def test_a_batch_follows_from_seed_and_number_alone():
    lengths = np.arange(1, 41)
    one, other = ByLength(lengths, 4, seed=5), ByLength(lengths, 4, seed=5)
    wanted = {number: one[number] for number in (25, 3, 11, 0)}
    assert all((other[number] == batch).all() for number, batch in wanted.items())
    assert not all((ByLength(lengths, 4, seed=6)[number] == batch).all() for number, batch in wanted.items())


def test_no_batch_holds_more_elements_than_allowed_but_one_that_is_longer_alone():
    lengths = [3, 90, 10, 10, 1, 9]
    batches = list(in_batches(lengths, 20))
    assert batches == [[1], [2, 3], [5, 0], [4]]

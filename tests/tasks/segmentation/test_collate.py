"""Batches of documents: padding, chunks, order."""

import numpy as np
import torch

from neural.tasks.segmentation.collate import (
    LengthBucketedOrder,
    SegmentationExample,
    collate_examples,
    iter_length_batches,
)


def make_example(length, document=0):
    x = np.arange(length * 2, dtype=np.float32).reshape(length, 2)
    return SegmentationExample(document, 0, x, np.arange(length) % 2, np.arange(length) % 3 == 2)


def test_shorter_rows_are_padded_and_masked():
    batch = collate_examples([make_example(2, 7), make_example(4, 3)])
    assert batch["x"].shape == (2, 4, 2)
    assert batch["mask"].tolist() == [[True, True, False, False], [True] * 4]
    assert batch["target"].tolist() == [[0, 1, 0, 0], [0, 1, 0, 1]]
    assert batch["boundaries"].tolist() == [[False] * 4, [False, False, True, False]]
    assert batch["document"].tolist() == [7, 3]
    assert (batch["x"][0, 2:] == 0).all()
    assert batch["x"].dtype == torch.float32


def test_chunks_of_a_long_document_join_to_the_document():
    example = make_example(11)
    chunks = list(example.split(4))
    assert [len(chunk) for chunk in chunks] == [3, 4, 4]
    assert [chunk.first for chunk in chunks] == [0, 3, 7]
    for name in ("x", "target", "boundaries"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(chunk, name) for chunk in chunks]), getattr(example, name)
        )
    assert [len(chunk) for chunk in example.split(11)] == [11]


def test_an_epoch_has_every_document_once_in_batches_of_similar_length():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 500, 64)
    order = LengthBucketedOrder(lengths, 4, seed=5)
    epoch = [order[index] for index in range(order.batches_per_epoch)]
    assert sorted(np.concatenate(epoch)) == list(range(64))
    bucketed_range = np.mean([np.ptp(lengths[batch]) for batch in epoch])
    random_range = np.mean([np.ptp(lengths[rng.permutation(64)[:4]]) for _ in range(200)])
    assert bucketed_range < random_range / 3
    longest = [lengths[batch].max() for batch in epoch]
    assert longest != sorted(longest)


def test_a_batch_depends_on_seed_and_index_alone():
    lengths = np.arange(1, 41)
    first, second = (LengthBucketedOrder(lengths, 4, seed=5) for _ in range(2))
    batches = {index: first[index] for index in (25, 3, 11, 0)}
    assert all((second[index] == batch).all() for index, batch in batches.items())
    assert not all(
        (LengthBucketedOrder(lengths, 4, seed=6)[index] == batch).all()
        for index, batch in batches.items()
    )


def test_only_a_longer_document_exceeds_the_maximum_of_elements():
    lengths = [3, 90, 10, 10, 1, 9]
    batches = list(iter_length_batches(lengths, 20))
    assert batches == [[1], [2, 3], [5, 0], [4]]

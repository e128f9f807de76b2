"""Validation split and batch order, which depend on the seed and the batch index alone."""

from __future__ import annotations

import numpy as np

SHUFFLE_RNG_STREAM = 0
SPLIT_RNG_STREAM = 1
"""Numbers of the random streams of this file; see `create_generator`."""


class BatchSampler:
    """Batches of the indices `examples`; every epoch is shuffled differently.

    The last, shorter batch of an epoch is dropped. With fewer examples than `batch_size`, every
    batch holds all of them.
    """

    def __init__(self, examples: np.ndarray, batch_size: int, seed: int) -> None:
        self.examples, self.batch_size, self.seed = examples, min(batch_size, len(examples)), seed
        self._epoch, self._shuffled = -1, examples  # cache: order of the last epoch used

    @property
    def batches_per_epoch(self) -> int:
        """Batches in an epoch."""
        return len(self.examples) // self.batch_size

    def __getitem__(self, index: int) -> np.ndarray:
        """Indices of the examples of batch `index`, counted from 0 over all epochs."""
        epoch, position = divmod(index, self.batches_per_epoch)
        if epoch != self._epoch:
            self._shuffled, self._epoch = self.shuffle(epoch), epoch
        return self._shuffled[position * self.batch_size : (position + 1) * self.batch_size]

    def shuffle(self, epoch: int) -> np.ndarray:
        """Example indices in the order of an epoch."""
        return create_generator(self.seed, epoch, stream=SHUFFLE_RNG_STREAM).permutation(
            self.examples
        )


def split_indices(
    count: int, validation_split: float, *, seed: int, ordered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Split the indices 0 to `count - 1` into (training, validation), each sorted.

    `validation_split` is the share held out. If it is above 0, at least one example is held out,
    unless there is only one. `ordered` holds out the end instead of a random choice.
    """
    held_out_count = (
        min(max(1, round(count * validation_split)), count - 1) if validation_split > 0 else 0
    )
    generator = create_generator(seed, 0, stream=SPLIT_RNG_STREAM)
    order = np.arange(count) if ordered else generator.permutation(count)
    return np.sort(order[: count - held_out_count]), np.sort(order[count - held_out_count :])


def create_generator(seed: int, index: int, *, stream: int) -> np.random.Generator:
    """Random generator that depends on its arguments alone.

    `index` numbers the generators of one use, for example by epoch. `stream` is a number per use,
    so that two uses with the same seed and index draw different numbers.
    """
    return np.random.Generator(np.random.Philox(key=[seed, index], counter=[0, 0, 0, stream]))

"""Which examples make which batch: a pure function of the seed and the batch's number."""

from __future__ import annotations

import numpy as np

from neural.tasks.data.split import generator


class Order:
    """Every epoch goes once through the examples in an order of its own.

    The last short batch of an epoch is left out, unless there are fewer examples than a batch holds.
    """

    def __init__(self, examples: np.ndarray, batch_size: int, seed: int) -> None:
        self.examples, self.size, self.seed = examples, min(batch_size, len(examples)), seed
        self._epoch, self._shuffled = -1, examples   # of the epoch that was asked for last

    @property
    def epoch(self) -> int:
        """Batches in an epoch."""
        return len(self.examples) // self.size

    def __getitem__(self, index: int) -> np.ndarray:
        """The numbers of the examples in a batch."""
        epoch, place = divmod(index, self.epoch)
        if epoch != self._epoch:
            self._shuffled, self._epoch = self.shuffled(epoch), epoch
        return self._shuffled[place * self.size : (place + 1) * self.size]

    def shuffled(self, epoch: int) -> np.ndarray:
        """The examples in the order of an epoch."""
        return generator(self.seed, epoch, purpose=0).permutation(self.examples)

"""Unigram and bigram models of characters: baselines that a language model should beat.

They count the training text. The unigram model predicts each character by its share; the bigram
model by the characters that followed the previous one, interpolated with the unigram model by
Witten and Bell's method (1991), so that no character is impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_BIGRAM_VOCABULARY = 2048
"""With a larger vocabulary there is no bigram model: its table would need 32 MB or more."""
CHUNK_CHARACTERS = 1 << 22
"""Characters of the training text counted at once."""


@dataclass(frozen=True, eq=False)
class NgramBaselines:
    """Both models as tables of log probabilities, in nats; V is the vocabulary size."""

    unigram: NDArray[np.float64]
    """Log probability of each token id, (V,)."""
    bigram: NDArray[np.float64] | None
    """Log probability of each id after each previous id, (V previous, V).

    None if the vocabulary is too large.
    """

    @classmethod
    def from_text(
        cls, ids: NDArray[np.integer], id_table: NDArray[np.int64], vocabulary_size: int
    ) -> NgramBaselines:
        """Count a text; `id_table` maps its ids to those of the network."""
        size = vocabulary_size
        counts = np.zeros(size)
        pair_counts = np.zeros(size * size) if size <= MAX_BIGRAM_VOCABULARY else None
        for start in range(0, len(ids), CHUNK_CHARACTERS):
            # One character more than the chunk: the pair across its end.
            chunk = id_table[ids[start : start + CHUNK_CHARACTERS + 1]].astype(np.int64)
            counts += np.bincount(chunk[:CHUNK_CHARACTERS], minlength=size)
            if pair_counts is not None:
                pair_counts += np.bincount(chunk[:-1] * size + chunk[1:], minlength=size * size)
        # One more of each, as for a character that the training text lacks.
        unigram = (counts + 1) / (counts.sum() + size)
        if pair_counts is None:
            return cls(np.log(unigram), None)
        pairs = pair_counts.reshape(size, size)
        total = pairs.sum(axis=1, keepdims=True)
        successors = np.maximum((pairs > 0).sum(axis=1, keepdims=True), 1)
        bigram = (pairs + successors * unigram) / (total + successors)
        return cls(np.log(unigram), np.log(bigram))

    def window_losses(
        self, x: NDArray[np.int64], y: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float64]]:
        """Mean loss of each window, (windows,), in nats, by model.

        `x` are the previous ids and `y` the predicted ones, (windows, characters).
        """
        losses = {"unigram": -self.unigram[y].mean(axis=1)}
        if self.bigram is not None:
            losses["bigram"] = -self.bigram[x, y].mean(axis=1)
        return losses

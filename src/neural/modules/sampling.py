"""Which token comes next, drawn from scores. Plain numpy: a row of scores is too short to be worth more."""

from __future__ import annotations

from typing import Any

import numpy as np


class Sampler:
    """Draws one id per sample from its scores; each sample has random numbers of its own.

    They follow from (seed, number of the sample) alone, one number per token: a sample is the same by itself and among
    others, as far as its scores are.
    """

    def __init__(
        self, samples: int, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
        seed: int = 0, first: int = 0, among: int | None = None,
    ) -> None:  # fmt: skip
        """`temperature` 0 takes the best; `top_k` the best few alone; `top_p` the fewest that hold that share.

        `first` is the number of the first sample. `among` so many ids, the first ones, is chosen.
        """
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, got {temperature}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top-k must be 1 or more, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"top-p must be above 0 and at most 1, got {top_p}")
        self.temperature, self.top_k, self.top_p, self.among = temperature, top_k, top_p, among
        keys = [np.random.SeedSequence(entropy=seed, spawn_key=(first + one,)) for one in range(samples)]
        self.random = [np.random.Generator(np.random.Philox(key)) for key in keys]

    def choose(self, scores: Any) -> np.ndarray:
        """An id for every row of scores (samples, ids)."""
        scores = scores[:, : self.among]
        if not np.isfinite(scores).all():
            raise ValueError("the network gives scores that are not finite: its weights are broken")
        if self.temperature == 0:
            return scores.argmax(axis=-1)
        share = self.shares(scores)
        # the first id up to which the shares add up to more than a random number below their sum
        upto = share.cumsum(axis=-1)
        drawn = np.array([[one.random()] for one in self.random]) * upto[:, -1:]
        return (upto <= np.minimum(drawn, np.nextafter(upto[:, -1:], 0))).sum(axis=-1)

    def shares(self, scores: Any) -> np.ndarray:
        """The chance of every id, but for a common factor; 0 for those that are left out."""
        wide = scores.astype(np.float64) / self.temperature
        share = np.exp(wide - wide.max(axis=-1, keepdims=True))
        if self.top_k is not None and self.top_k < share.shape[-1]:
            least = np.partition(share, -self.top_k, axis=-1)[:, -self.top_k, None]
            share[share < least] = 0
        if self.top_p is not None and self.top_p < 1:
            order = np.argsort(-share, axis=-1, kind="stable")
            falling = np.take_along_axis(share, order, axis=-1)
            before = falling.cumsum(axis=-1) - falling   # what the better ones hold together
            falling[before >= self.top_p * share.sum(axis=-1, keepdims=True)] = 0
            np.put_along_axis(share, order, falling, axis=-1)
        return share

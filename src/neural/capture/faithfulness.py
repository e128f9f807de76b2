"""Faithfulness of explanations: do the positions that they call important matter to the model?

    result = measure_faithfulness(subject.score_variants, tokens, scores, replacements)
    result.gains("rollout")          nats; 0 is what a random explanation has on average

Deletion: tokens are replaced, the most important first, and the log-probability of the answer is
measured; a faithful order makes it fall early. Insertion: all tokens are replaced, and the most
important ones return first; a faithful order makes it rise early. The area under a curve is its
mean over the share of replaced tokens. The gain is the difference to the mean area of random
orders, signed so that larger is better; the faithfulness number is the mean of both gains.

A token is removed by replacing it with another one, drawn by the frequency of tokens in the
examples. That works for every model that reads tokens, removes what the token said and keeps inputs
of a kind that the model knows. Hiding positions from attention instead would change what the model
was never trained for, and would favour methods that look at attention. The replacements are the
same for all methods, and not those that "ablation" used to find its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.capture.residual_stream import AttributionError
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Generator, Tensor

    ScoreVariants = Callable[[Tensor], np.ndarray]
    """Log-probability of the answer for each row of token ids (N, T)."""

RANDOM_ORDERS = 10
"""Random orders per example, whose mean area is the zero of the gains."""
CURVE_STEPS = 10
"""Shares of replaced tokens at which a curve is measured, besides 0."""
REPLACEMENT_DRAWS = 2
"""Rows of replacements over which a curve is averaged."""


@dataclass(frozen=True)
class Curves:
    """Log-probability of the answer by share of tokens, for one order of an example."""

    deletion: Float[np.ndarray, " N"]
    """With the first tokens of the order replaced."""
    insertion: Float[np.ndarray, " N"]
    """With only the first tokens of the order in place."""


@dataclass(frozen=True)
class ExampleFaithfulness:
    """Curves of all methods for one prediction, and those of random orders."""

    shares: Float[np.ndarray, " N"]
    """Share of tokens that are replaced (deletion) or in place (insertion)."""
    curves: dict[str, Curves]
    random: list[Curves]

    def deletion_gain(self, method: str) -> float:
        """Mean area of random orders minus that of the method."""
        random = np.mean([self._area(curves.deletion) for curves in self.random])
        return float(random - self._area(self.curves[method].deletion))

    def insertion_gain(self, method: str) -> float:
        """Area of the method minus the mean area of random orders."""
        random = np.mean([self._area(curves.insertion) for curves in self.random])
        return float(self._area(self.curves[method].insertion) - random)

    def gain(self, method: str) -> float:
        """The faithfulness number: mean of the gains of deletion and insertion, in nats."""
        return (self.deletion_gain(method) + self.insertion_gain(method)) / 2

    def _area(self, curve: np.ndarray) -> float:
        widths = np.diff(self.shares)
        return float((widths * (curve[1:] + curve[:-1]) / 2).sum())


def draw_replacements(
    pool: Int[Tensor, " N"], tokens: Int[Tensor, " T"], count: int, generator: Generator
) -> Int[Tensor, "count T"]:
    """Tokens that replace those of an example: drawn from `pool`, each other than the original.

    If the pool has no other token, the original stays: it cannot be replaced.
    """
    candidates = pool.repeat(len(tokens), 1)
    weights = (candidates != tokens.unsqueeze(1)).float()
    weights[weights.sum(-1) == 0] = 1
    chosen = torch.multinomial(weights, count, replacement=True, generator=generator)
    return pool[chosen].T.contiguous()


def count_variants(length: int, orders: int) -> int:
    """Most rows of tokens that `measure_faithfulness` runs for one prediction with 2 replacements."""
    inner_shares = min(length, CURVE_STEPS) - 1
    return REPLACEMENT_DRAWS * (2 * orders * inner_shares + 1) + 1


def measure_faithfulness(
    score_variants: ScoreVariants,
    tokens: Int[Tensor, " T"],
    scores: Mapping[str, Float[np.ndarray, " T"]],
    replacements: Int[Tensor, "R T"],
    *,
    random_orders: int = RANDOM_ORDERS,
    steps: int = CURVE_STEPS,
    seed: int = 0,
) -> ExampleFaithfulness:
    """Deletion and insertion curves of one prediction for several explanations.

    `scores` are those of the source positions, by method; equal ones are ordered at random. All
    orders are measured with the same replacements, and `seed` draws the random orders.
    """
    length = len(tokens)
    if length < 2:
        raise AttributionError("faithfulness needs at least two source positions")
    rng = np.random.default_rng(seed)
    orders: list[np.ndarray] = []
    for method, values in scores.items():
        if len(values) != length or not np.isfinite(values).all():
            raise AttributionError(
                f"the scores of `{method}` must be {length} finite numbers, one per token"
            )
        orders.append(np.lexsort((rng.random(length), -np.asarray(values))))
    orders += [rng.permutation(length) for _ in range(random_orders)]
    counts = np.unique(np.round(np.linspace(0, length, steps + 1)).astype(int))
    ranks = np.argsort(orders, axis=1)  # (orders, T): place of each position in an order
    is_first = ranks[:, None, :] < counts[None, :, None]  # (orders, counts, T)
    # deletion replaces the first ones, insertion all others
    is_replaced = torch.from_numpy(np.stack([is_first, ~is_first]))
    variants = torch.where(
        is_replaced.unsqueeze(-2), replacements.to(tokens), tokens
    )  # (2, orders, counts, R, T)
    flat = variants.flatten(0, -2)
    # the ends of all curves are the same input: only different variants run
    unique, inverse = torch.unique(flat, dim=0, return_inverse=True)
    values = np.asarray(score_variants(unique), dtype=float)[inverse.numpy()]
    if not np.isfinite(values).all():
        raise AttributionError("the model's log-probabilities are not finite on replaced tokens")
    deletion, insertion = values.reshape(2, len(orders), len(counts), -1).mean(axis=-1)
    curves = [Curves(*pair) for pair in zip(deletion, insertion, strict=True)]
    return ExampleFaithfulness(
        counts / length, dict(zip(scores, curves, strict=False)), curves[len(scores) :]
    )

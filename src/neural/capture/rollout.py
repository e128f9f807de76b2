"""Attention rollout: how much of each input position reaches a position through several layers.

    *_, last = iter_rollouts(call.maps()[0] for call in capture)
    last[0]                     what the first position, such as CLS, holds of each input position

Abnar & Zuidema (2020), "Quantifying attention flow in transformers". A layer passes on half of a
position itself (the residual connection) and half of what its heads attend to, on average. Rollout
multiplies these matrices from the first layer to the last. It ignores values and the sizes of
residual streams: it says where information can come from, not what the model uses.

    relevance = rollout_gradients(maps, gradients)      what one answer uses

Chefer et al. (2021), "Generic attention-model explainability": weights count by the gradient of an
answer, and only where attending more would raise it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def iter_rollouts(
    layers: Iterable[Float[np.ndarray, "H N N"]],
) -> Iterator[Float[np.ndarray, "N N"]]:
    """The rollout up to each layer: row i says what position i holds of the N inputs.

    `layers` are the maps of all self-attention layers of one example, in order; none may be
    missing. Rows sum to 1. Time O(N³) per layer, memory O(N²).
    """
    rollout = None
    for maps in layers:
        queries, keys = maps.shape[1:]
        if queries != keys:
            raise ValueError(f"rollout needs self-attention: a map has {queries} × {keys} cells")
        if rollout is not None and len(rollout) != keys:
            raise ValueError(
                f"rollout needs the same positions in all layers: {len(rollout)}, then {keys}"
            )
        mixing = maps.mean(axis=0, dtype=np.float64)
        mixing += np.eye(keys)
        # Weights sum to 1 unless some went to a learned sink. Normalised, no row loses mass.
        mixing /= mixing.sum(axis=-1, keepdims=True)
        rollout = mixing if rollout is None else mixing @ rollout
        yield rollout


def rollout_gradients(
    layers: Iterable[Float[np.ndarray, "H N N"]], gradients: Iterable[Float[np.ndarray, "H N N"]]
) -> Float[np.ndarray, "N N"]:
    """Rollout with gradients: row i says how relevant the N inputs at position i are to an answer.

    `gradients` are those of the answer with respect to the weights. A layer adds the positive part
    of gradient × weight, averaged over heads, times the relevance so far. Rows have any sum.
    """
    relevance = None
    for maps, gradient in zip(layers, gradients, strict=True):
        queries, keys = maps.shape[1:]
        if queries != keys:
            raise ValueError(f"rollout needs self-attention: a map has {queries} × {keys} cells")
        relevance = np.eye(keys) if relevance is None else relevance
        if len(relevance) != keys:
            raise ValueError(
                f"rollout needs the same positions in all layers: {len(relevance)}, then {keys}"
            )
        used = np.maximum(maps.astype(np.float64) * gradient, 0).mean(axis=0)
        relevance = relevance + used @ relevance
    if relevance is None:
        raise ValueError("rollout needs at least one layer")
    return relevance

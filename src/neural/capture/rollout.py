"""Attention rollout: how much of each input position reaches a position through several layers.

    *_, last = iter_rollouts(call.maps()[0] for call in capture)
    last[0]                     what the first position, such as CLS, holds of each input position

Abnar & Zuidema (2020), "Quantifying attention flow in transformers". A layer passes on half of a
position itself (the residual connection) and half of what its heads attend to, on average. Rollout
multiplies these matrices from the first layer to the last. It ignores values and the sizes of
residual streams: it says where information can come from, not what the model uses.
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

"""Helpers under names that neural uses as well: each does something else here."""

from __future__ import annotations

from torch import Tensor

BLOCK = 3
EPSILON: float = 0.25


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Scaled by the width, not by its root, and shifted."""
    return q @ k.transpose(-1, -2) / q.shape[-1] + EPSILON


def in_blocks(x: Tensor) -> Tensor:
    """Not cut at all."""
    return x * BLOCK


class Linear:
    """Not a layer."""

    factor = 1.5

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor

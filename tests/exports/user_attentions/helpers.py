"""Helpers with names that neural uses, too; each does something else here."""

from __future__ import annotations

from torch import Tensor

BLOCK_SIZE = 3
QK_NORM_EPSILON: float = 0.25


def dot_product_scores(q: Tensor, k: Tensor) -> Tensor:
    """Scaled by the width, not by its root, and shifted."""
    return q @ k.transpose(-1, -2) / q.shape[-1] + QK_NORM_EPSILON


def split_into_blocks(x: Tensor) -> Tensor:
    """Does not split."""
    return x * BLOCK_SIZE


class Linear:
    """Not a layer."""

    factor = 1.5

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor

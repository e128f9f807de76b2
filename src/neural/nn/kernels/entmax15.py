"""1.5-entmax of the entmax package, a replacement of `entmax15` in nn/attention/entmax15.py.

It sorts only the largest scores of a row: faster than the function in torch from 256 keys on.
`use_kernel` (kernel_dispatch.py) calls `run` if `supports` is True.
"""

from __future__ import annotations

import entmax

from neural.nn.checks import is_finite
from neural.nn.lazy_torch import torch

INITIAL_SORT_SIZE = 64
"""Number of largest scores sorted first; doubled until all scores with weight are sorted."""


def supports(scores: torch.Tensor) -> bool:
    """Whether all scores are finite: the package fails on NaN, where torch returns NaN."""
    return is_finite(scores)


def run(scores: torch.Tensor) -> torch.Tensor:
    """Weights that sum to 1 along the last axis."""
    return entmax.entmax15(scores, dim=-1, k=INITIAL_SORT_SIZE)

"""Kernel of 1.5-entmax, a replacement of `entmax15` in nn/attention/entmax15.py.

`use_kernel` (kernel_dispatch.py) calls `run` if `supports` is True.
"""

from __future__ import annotations

from neural.nn.kernels.entmax_rows import entmax_rows, supports
from neural.nn.lazy_torch import torch

__all__ = ["TRACEABLE", "run", "supports"]

TRACEABLE = True
"""`torch.compile` may put the operator in its graph: `supports` reads no values of tensors."""


def run(scores: torch.Tensor) -> torch.Tensor:
    """Weights that sum to 1 along the last axis."""
    return entmax_rows(scores, squared=True)

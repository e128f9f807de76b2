"""Tensors as NumPy arrays for numba, which gets as many threads as torch."""

from __future__ import annotations

from typing import Any

import numba

from neural.nn.lazy_torch import torch


def to_numba_arrays(*tensors: torch.Tensor) -> list[Any]:
    """Views of tensors as NumPy arrays. Also sets numba's thread count to torch's."""
    threads, max_threads = torch.get_num_threads(), vars(numba.config)["NUMBA_NUM_THREADS"]
    numba.set_num_threads(min(threads, max_threads))
    # numba may share OpenMP threads with torch; starting them can change torch's thread count.
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    return [tensor.detach().numpy() for tensor in tensors]

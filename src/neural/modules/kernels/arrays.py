"""Tensors as the arrays that numba reads, and as many threads for it as torch has."""

from __future__ import annotations

from typing import Any

import numba

from neural.modules.late import torch


def arrays(*tensors: torch.Tensor) -> list[Any]:
    """Views, not copies."""
    wanted, most = torch.get_num_threads(), vars(numba.config)["NUMBA_NUM_THREADS"]
    numba.set_num_threads(min(wanted, most))
    if torch.get_num_threads() != wanted:   # numba's threads may be OpenMP's, whose number is set when they start
        torch.set_num_threads(wanted)
    return [tensor.detach().numpy() for tensor in tensors]

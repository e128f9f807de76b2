"""One thread for networks that are too small for several.

An operation that is divided among threads ends with the slowest of them. In a small network that
costs more than it saves, and beside other work far more: a thread that waits for a busy core holds
up all others, at every operation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.core.platform_support import count_cores
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import nn

MIN_PARALLEL_WORK = 4_000_000
"""Parameters × positions of a batch from which all threads are used. It is rough: beside other work
two threads were never faster in the median, and their fastest steps only from about here on, in
some cases (benchmarks/threads.py)."""


def count_work(model: nn.Module, batch_size: int) -> float:
    """Parameters × positions of a batch: about a sixth of the products of a training step.

    A table has one position per row, a text one per token, a picture one per pixel. Infinite for
    models whose input shape is not known.
    """
    network: Any = getattr(model, "network", None)
    shape = getattr(network, "input", None)
    if shape is None or not all(isinstance(size, int) for size in shape):
        return math.inf
    positions = math.prod(shape if network.takes_token_ids else shape[:-1])
    return batch_size * positions * sum(weight.numel() for weight in model.parameters())


@contextmanager
def use_threads_for(model: nn.Module, batch_size: int) -> Iterator[None]:
    """Let torch use one thread inside the block if the model is small.

    A number that the user has set, with OMP_NUM_THREADS or torch.set_num_threads, stays.
    """
    previous = torch.get_num_threads()
    cpus = count_cores()
    # by default torch uses all processors, or one of the two of each core
    is_default = "OMP_NUM_THREADS" not in os.environ and previous in (cpus, cpus // 2)
    is_small = count_work(model, batch_size) < MIN_PARALLEL_WORK
    if not (is_default and is_small and next(model.parameters()).device.type == "cpu"):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(previous)

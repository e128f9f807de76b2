"""One thread for networks that are too small for several.

An operation that is divided among threads ends with the slowest of them. In a small network that
costs more than it saves, and beside other work far more: a thread that waits for a busy core holds
up all others, at every operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from neural.core.platform_support import count_cores
from neural.nn.lazy_torch import nn, torch

MIN_PARALLEL_WORK = 4_000_000
"""Parameters × positions of a batch from which all threads are used. It is rough: beside other work
two threads were never faster in the median, and their fastest steps only from about here on, in
some cases (benchmarks/threads.py)."""


def count_work(model: nn.Module, positions: int) -> int:
    """Parameters × positions of a batch: about a sixth of the products of a training step.

    The tables of embeddings do not count: rows are read from them, not multiplied. (A tied output
    multiplies its table, but beside it the other layers alone are large.)
    """
    weights = {
        weight: weight.numel()
        for module in model.modules()
        if not isinstance(module, nn.Embedding)
        for weight in module.parameters(recurse=False)
    }
    return positions * sum(weights.values())


@contextmanager
def use_threads_for(model: nn.Module, positions: int) -> Iterator[None]:
    """Let torch use one thread inside the block if the model is small.

    `positions` are those of a batch (`Task.count_positions`). A number that the user has set, with
    OMP_NUM_THREADS or torch.set_num_threads, stays.
    """
    previous = torch.get_num_threads()
    cpus = count_cores()
    # by default torch uses all processors, or one of the two of each core
    is_default = "OMP_NUM_THREADS" not in os.environ and previous in (cpus, cpus // 2)
    is_small = count_work(model, positions) < MIN_PARALLEL_WORK
    if not (is_default and is_small and next(model.parameters()).device.type == "cpu"):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(previous)

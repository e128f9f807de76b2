"""Synchronization of a model's buffers between processes, once per step.

Batch normalization: every process normalizes its batches by their own statistics, as with gradient
accumulation. The running statistics become those of one process that saw all batches in order:
r ← (1−m) r + m s, for running statistic r, batch statistic s and momentum m. Process j of N (from
0) sees every N-th batch only, so it updates with the momentum a = 1 − (1−m)^N instead. The weighted
mean over processes with the weights m (1−m)^(N−1−j) / a, which sum to 1, then equals the r of one
process exactly, after any number of batches. So one all-reduce per step is enough. (If a norm runs
several times per batch, the order inside a step differs from that of one process.)

All other buffers are broadcast from rank 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural.nn.lazy_torch import torch
from neural.training.process_group import ProcessGroup

if TYPE_CHECKING:
    from torch import nn


class BufferSync:
    """Keeps the buffers of a model equal in all processes.

    The constructor changes the momentum of the model's batch norms.
    """

    def __init__(self, model: nn.Module, group: ProcessGroup) -> None:
        self.group = group
        self.norms = find_batch_norms(model) if group.size > 1 else []
        self.weights = []
        """Weight of this process in the mean over processes, per norm."""
        for norm in self.norms:
            momentum, later_processes = norm.momentum, group.size - 1 - group.rank
            norm.momentum = 1 - (1 - momentum) ** group.size
            self.weights.append(momentum * (1 - momentum) ** later_processes / norm.momentum)
        self.batches_seen = [norm.num_batches_tracked.clone() for norm in self.norms]
        """Batches of all processes together at the last call of `step`, per norm."""
        norm_buffers = {id(buffer) for norm in self.norms for buffer in norm.buffers()}
        buffers = model.buffers() if group.size > 1 else ()
        self.other_buffers = [buffer for buffer in buffers if id(buffer) not in norm_buffers]

    def step(self) -> None:
        """Synchronize after the batches of a step."""
        for buffer in self.other_buffers:
            self.group.broadcast(buffer)
        if self.norms:
            self._merge_statistics()

    def _merge_statistics(self) -> None:
        """Replace the running statistics by their weighted mean over processes; sum the counts."""
        statistics = [
            (weight, buffer)
            for weight, norm in zip(self.weights, self.norms, strict=True)
            for buffer in (norm.running_mean, norm.running_var)
        ]
        merged = self.group.sum(torch.cat([weight * buffer for weight, buffer in statistics]))
        sizes = [len(buffer) for _, buffer in statistics]
        for (_, buffer), value in zip(statistics, merged.split(sizes), strict=True):
            buffer.copy_(value)
        for norm, batches_seen in zip(self.norms, self.batches_seen, strict=True):
            own_batches = norm.num_batches_tracked - batches_seen
            # in place, to update self.batches_seen; all processes have equally many batches
            batches_seen += self.group.size * own_batches
            norm.num_batches_tracked.copy_(batches_seen)


def find_batch_norms(model: nn.Module) -> list[Any]:
    """Batch norms with running statistics, except those with cumulative ones (`momentum=None`).

    The formula of this module needs a momentum.
    """
    batch_norm_class = torch.nn.modules.batchnorm._BatchNorm
    return [
        module
        for module in model.modules()
        if isinstance(module, batch_norm_class)
        and module.track_running_stats
        and module.momentum is not None
    ]

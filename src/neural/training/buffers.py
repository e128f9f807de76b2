"""Buffers of a model that several processes train together: the same in all, once per step.

Batch normalization: every process normalises its batches by their own statistics, as gradient
accumulation does. The running statistics become those of one process that saw all batches in
order, r ← (1−m) r + m s. Process j of N sees every N-th batch only. If it updates with momentum
a = 1 − (1−m)^N, then the weighted mean over processes with weights m (1−m)^(N−1−j) / a, which
sum to 1, is exactly that recurrence, after any number of batches: one all-reduce per step. (Where
a norm runs several times per batch, the order inside a step differs from one process's.)

All other buffers are those of the first process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural.modules.late import torch
from neural.training.workers import Workers

if TYPE_CHECKING:
    from torch import nn


class BufferSync:
    """Makes the buffers of a model equal in all processes. Sets the momentum of its batch norms."""

    def __init__(self, model: nn.Module, workers: Workers) -> None:
        self.workers = workers
        self.norms = batch_norms(model) if workers.count > 1 else []
        self.weights = []
        """Of this process in the mean over processes, one per norm."""
        for norm in self.norms:
            momentum, later = norm.momentum, workers.count - 1 - workers.rank
            norm.momentum = 1 - (1 - momentum) ** workers.count
            self.weights.append(momentum * (1 - momentum) ** later / norm.momentum)
        self.seen = [norm.num_batches_tracked.clone() for norm in self.norms]
        """Batches of all processes together, when `step` was last called."""
        own = {id(buffer) for norm in self.norms for buffer in norm.buffers()}
        every = model.buffers() if workers.count > 1 else ()
        self.others = [buffer for buffer in every if id(buffer) not in own]

    def step(self) -> None:
        """After the batches of a step."""
        for buffer in self.others:
            self.workers.broadcast(buffer)
        if self.norms:
            self._merge_statistics()

    def _merge_statistics(self) -> None:
        statistics = [
            (weight, buffer)
            for weight, norm in zip(self.weights, self.norms, strict=True)
            for buffer in (norm.running_mean, norm.running_var)
        ]
        merged = self.workers.sum(torch.cat([weight * buffer for weight, buffer in statistics]))
        sizes = [len(buffer) for _, buffer in statistics]
        for (_, buffer), value in zip(statistics, merged.split(sizes), strict=True):
            buffer.copy_(value)
        for norm, seen in zip(self.norms, self.seen, strict=True):
            own = norm.num_batches_tracked - seen
            seen += self.workers.count * own
            norm.num_batches_tracked.copy_(seen)


def batch_norms(model: nn.Module) -> list[Any]:
    """The batch norms with running statistics, but for cumulative averages (momentum None)."""
    kind = torch.nn.modules.batchnorm._BatchNorm
    return [
        module
        for module in model.modules()
        if isinstance(module, kind) and module.track_running_stats and module.momentum is not None
    ]

"""The processes that train one network together: DDP, FSDP and collectives.

Several processes are started by `torchrun … -m neural train …`, or by `neural train --devices 2`.
Each works on batches of its own; gradients are averaged (DDP), or weights, gradients and optimizer
state are sharded (FSDP).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.experiment import world_size
from neural.nn.lazy_torch import lazy_import, torch
from neural.training.loss_module import LossModule, find_blocks
from neural.training.rendezvous import join_rendezvous

if TYPE_CHECKING:
    from torch import Tensor, nn

distributed = lazy_import("torch.distributed")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes that train one network together; a single one unless torchrun started more."""

    rank: int = 0
    """Index of this process, from 0."""
    size: int = 1
    """Number of processes."""
    local_rank: int = 0
    """Rank among the processes of this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, the only process that writes the run."""
        return self.rank == 0

    def select_device(self, name: str) -> torch.device:
        """The device of this process for a value of `training.device`."""
        if name == "auto":
            name = (
                "cuda"
                if torch.cuda.is_available()
                else "mps"
                if torch.backends.mps.is_available()
                else "cpu"
            )
        elif name == "cuda" and not torch.cuda.is_available():
            raise TaskError(
                "training.device is cuda, but torch finds no GPU here; `auto` uses what there is"
            )
        return torch.device(name, self.local_rank) if name == "cuda" else torch.device(name)

    def distribute(
        self, loss_module: LossModule, device: torch.device, *, shard: bool
    ) -> nn.Module:
        """Wrap the loss module in DDP, or `shard` it with FSDP; unchanged in a single process.

        The loss module contains the model and computes the loss of a batch (loss_module.py).
        """
        if self.size == 1:
            return loss_module
        if shard:
            from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

            for block in find_blocks(loss_module.model):
                fully_shard(block)
            # FSDP gathers weights only around `forward`, and a task may call any method of its
            # model. So the root is the loss module, which runs the task's code, also for
            # evaluation: `call_with_model(function)` runs function(model) with gathered weights.
            fully_shard(loss_module)
            register_fsdp_forward_method(loss_module, LossModule.call_with_model.__name__)
            return loss_module
        from torch.nn.parallel import DistributedDataParallel

        device_ids = [device.index] if device.type == "cuda" else None
        wrapped = DistributedDataParallel(loss_module, device_ids=device_ids)
        # Buffers are synchronized by `training.buffer_sync`, once per step. Set as an attribute,
        # because the constructor argument `broadcast_buffers` warns since torch 2.13.
        wrapped.broadcast_buffers = False
        return wrapped

    def accumulate(self, loss_module: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Context for the forward and backward pass of one micro-batch.

        With gradient accumulation a step has several; gradients are synchronized between processes
        only in the `last` one. `loss_module` is what `distribute` returned.
        """
        if self.size == 1:
            return nullcontext()
        if isinstance(loss_module, LossModule):  # sharded by FSDP; DDP would wrap it
            loss_module.set_requires_gradient_sync(last)  # type: ignore[operator]
            return nullcontext()
        return nullcontext() if last else loss_module.no_sync()  # type: ignore[operator]

    def sum(self, value: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value

    def mean(self, value: Tensor) -> Tensor:
        """Average a tensor over all processes, in place."""
        self.sum(value)
        if self.size > 1:
            value /= self.size
        return value

    def sum_numbers(self, values: Sequence[float]) -> list[float]:
        """Sum plain numbers over all processes, in float64."""
        if self.size == 1:
            return list(values)
        return self.sum(torch.tensor(values, dtype=torch.float64, device=self._device())).tolist()

    def broadcast(self, value: Tensor) -> Tensor:
        """Copy the tensor of rank 0 to all processes, in place."""
        if self.size > 1:
            distributed.broadcast(value, src=0)
        return value

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in at least one process. Waits for all processes."""
        if self.size == 1:
            return flag
        count = torch.tensor(float(flag), device=self._device())
        distributed.all_reduce(count)
        return bool(count > 0)

    def broadcast_object(self, value: Any) -> Any:
        """The value of rank 0, pickled to all processes."""
        if self.size == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0, device=self._device())
        return values[0]

    def _device(self) -> torch.device:
        """The device that tensors must be on for collectives: nccl needs a GPU, gloo the CPU."""
        return (
            torch.device("cuda", self.local_rank)
            if distributed.get_backend() == "nccl"
            else torch.device("cpu")
        )


@contextmanager
def join_group(device: str = "auto") -> Iterator[ProcessGroup]:
    """Join the processes that torchrun started; without torchrun, a group of this process alone."""
    if world_size() == 1:
        yield ProcessGroup()
        return
    use_gpu = device in ("auto", "cuda") and torch.cuda.is_available()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if use_gpu:
        torch.cuda.set_device(local_rank)
    store, rank, size = join_rendezvous()
    distributed.init_process_group(
        "nccl" if use_gpu else "gloo", store=store, rank=rank, world_size=size
    )
    try:
        yield ProcessGroup(rank=rank, size=size, local_rank=local_rank)
    finally:
        distributed.destroy_process_group()

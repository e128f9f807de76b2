"""One process or many: who am I, and how do we agree?

Many processes are started by `torchrun … -m neural train …`, or by `neural train --devices 2`. Each works on batches of
its own; gradients are averaged (DDP), or weights, gradients and optimizer are split among them (FSDP).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neural.modules.late import late, torch
from neural.tasks.experiment import world_size
from neural.tasks.task import TaskError
from neural.training.meeting import met
from neural.training.objective import Objective, blocks_of

if TYPE_CHECKING:
    from torch import Tensor, nn

distributed = late("torch.distributed")


@dataclass(frozen=True)
class Workers:
    """The processes that train one network together; alone unless torchrun says otherwise."""

    rank: int = 0
    count: int = 1
    here: int = 0
    """Which one of this machine's."""

    @property
    def first(self) -> bool:
        """The one that writes."""
        return self.rank == 0

    def device(self, wanted: str) -> torch.device:
        """Where this process computes."""
        if wanted == "auto":
            wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        elif wanted == "cuda" and not torch.cuda.is_available():
            raise TaskError("training.device is cuda, but torch finds no GPU here; `auto` takes what there is")
        return torch.device(wanted, self.here) if wanted == "cuda" else torch.device(wanted)

    def spread(self, objective: Objective, device: torch.device, *, shard: bool) -> nn.Module:
        """The objective as all processes train it together."""
        if self.count == 1:
            return objective
        if shard:
            from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

            for block in blocks_of(objective.model):
                fully_shard(block)
            # FSDP gathers weights around `forward` alone, and a task may call any method of its
            # model: so the root is the objective, which runs the task's code.
            fully_shard(objective)
            register_fsdp_forward_method(objective, "run")
            return objective
        from torch.nn.parallel import DistributedDataParallel

        ids = [device.index] if device.type == "cuda" else None
        spread = DistributedDataParallel(objective, device_ids=ids)
        # BufferSync does it, once per step. The argument of that name warns since torch 2.13.
        spread.broadcast_buffers = False
        return spread

    def adding(self, spread: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Gradients of all but the last batch of a step stay at home: one exchange per step."""
        if self.count == 1:
            return nullcontext()
        if isinstance(spread, Objective):
            spread.set_requires_gradient_sync(last)   # type: ignore[operator]
            return nullcontext()
        return nullcontext() if last else spread.no_sync()   # type: ignore[operator]

    def sum(self, value: Tensor) -> Tensor:
        """Over all processes, in place."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value

    def mean(self, value: Tensor) -> Tensor:
        """Over all processes, in place."""
        self.sum(value)
        if self.count > 1:
            value /= self.count
        return value

    def sums(self, values: Sequence[float]) -> list[float]:
        """Of plain numbers over all processes, in 64 bits."""
        if self.count == 1:
            return list(values)
        return self.sum(torch.tensor(values, dtype=torch.float64, device=self._device())).tolist()

    def broadcast(self, value: Tensor) -> Tensor:
        """The first process's tensor, in place."""
        if self.count > 1:
            distributed.broadcast(value, src=0)
        return value

    def any(self, flag: bool) -> bool:
        """Whether it is so in one process at least."""
        if self.count == 1:
            return flag
        told = torch.tensor(float(flag), device=self._device())
        distributed.all_reduce(told)
        return bool(told > 0)

    def told(self, value: Any) -> Any:
        """What the first process says."""
        if self.count == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=self._device())
        return box[0]

    def _device(self) -> torch.device:
        return torch.device("cuda", self.here) if distributed.get_backend() == "nccl" else torch.device("cpu")


@contextmanager
def joined(device: str = "auto") -> Iterator[Workers]:
    """Join the others, where torchrun started several."""
    if world_size() == 1:
        yield Workers()
        return
    on_gpu = device in ("auto", "cuda") and torch.cuda.is_available()
    here = int(os.environ.get("LOCAL_RANK", "0"))
    if on_gpu:
        torch.cuda.set_device(here)
    store, rank, count = met()
    distributed.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=count)
    try:
        yield Workers(rank=rank, count=count, here=here)
    finally:
        distributed.destroy_process_group()

"""The loss of a model as a module, for DDP and FSDP; activation checkpointing.

A task (tasks/task.py) defines model, data and loss. Its loss is a sum of named terms, each a mean
over the targets (say, tokens) of a batch. Curves are further such means that are logged only. A
step has one batch per process and gradient accumulation; the share of a batch is its number of
targets divided by that of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

from neural.nn.lazy_torch import Module
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tasks.task import Batch

Result = TypeVar("Result")


class LossModule(Module):
    """Computes the loss of a batch. This module, not the model, is wrapped by DDP or FSDP.

    They act on `forward` only, but a task may call any method of its model.
    """

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(
        self, batch: Batch, shares: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The batch's contribution to the loss of the step, and to the task's other curves.

        `shares` are the shares of the batch by term or curve, from `compute_shares`.
        """
        terms, curves = self.task.loss_terms(self.model, batch)
        loss = reduce(add, [scale_by_share(term, name, shares) for name, term in terms.items()])
        return loss, {name: scale_by_share(curve, name, shares) for name, curve in curves.items()}

    def call_with_model(self, call: Callable[[nn.Module], Result]) -> Result:
        """Call a function with the model. Under FSDP the weights are gathered inside the call."""
        return call(self.model)


def compute_shares(
    weights: Mapping[str, float], totals: Mapping[str, float], processes: int
) -> dict[str, float]:
    """The shares of a batch by term or curve, times the number of processes.

    `weights` are the batch's numbers of targets by term or curve (`Task.loss_weights`), `totals`
    their sums over all batches of the step. The factor is needed because DDP and FSDP average
    gradients over processes, and the step needs their sum.
    """
    return {
        name: processes * weight / totals[name] if totals[name] else 0.0
        for name, weight in weights.items()
    }


def scale_by_share(value: Tensor, name: str, shares: Mapping[str, float]) -> Tensor:
    """Scale a batch's mean of term or curve `name` to its share of the step's mean.

    A name without an own share gets that of "loss". If `shares` is empty, because the step has one
    batch, the value is unchanged.
    """
    share = shares.get(name, shares.get("loss", 1.0))
    return value if share == 1.0 else value * share


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """The large repeated blocks of a model (transformer blocks), from its method `blocks()`.

    Empty if the model has no such method.
    """
    return list(getattr(model, "blocks", list)())


def enable_checkpointing(blocks: list[nn.Module]) -> None:
    """Recompute activations inside blocks during the backward pass (Chen et al., 2016)."""
    from torch.utils.checkpoint import checkpoint

    for block in blocks:
        original_forward = block.forward

        def forward(*args: Any, original: Callable[..., Any] = original_forward) -> Any:
            return checkpoint(original, *args, use_reentrant=False)

        block.forward = forward

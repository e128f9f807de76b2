"""The loss of a model as a module of its own: what processes share, and what activations are recomputed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

from neural.modules.late import Module
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tasks.task import Batch

Result = TypeVar("Result")


class Objective(Module):
    """A batch in, its loss out."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(
        self, batch: Batch, shares: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """What the batch adds to the loss of the step, and to its curves.

        `shares` says by name how much of the step's mean the batch is: see `shares_of`.
        """
        terms, curves = self.task.loss_terms(self.model, batch)
        loss = reduce(add, [scaled(term, name, shares) for name, term in terms.items()])
        return loss, {name: scaled(curve, name, shares) for name, curve in curves.items()}

    def run(self, call: Callable[[nn.Module], Result]) -> Result:
        """Call a function with the model. Under FSDP the weights are whole inside the call."""
        return call(self.model)


def shares_of(
    weights: Mapping[str, float], totals: Mapping[str, float], processes: int
) -> dict[str, float]:
    """How much of each of the step's means a batch is, times the number of processes.

    DDP and FSDP average gradients over processes: the factor turns that mean into a sum.
    """
    return {
        name: processes * weight / totals[name] if totals[name] else 0.0
        for name, weight in weights.items()
    }


def scaled(value: Tensor, name: str, shares: Mapping[str, float]) -> Tensor:
    """A mean over a batch as its part of the mean over the step: all of it, without shares."""
    share = shares.get(name, shares.get("loss", 1.0))
    return value if share == 1.0 else value * share


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The large repeated parts, where a model says which they are."""
    return list(getattr(model, "blocks", list)())


def recompute(blocks: list[nn.Module]) -> None:
    """Keep no activations inside blocks; make them again on the way back (Chen et al., 2016)."""
    from torch.utils.checkpoint import checkpoint

    for block in blocks:
        inner = block.forward

        def again(*given: Any, inner: Callable[..., Any] = inner) -> Any:
            return checkpoint(inner, *given, use_reentrant=False)

        block.forward = again

"""The loss of a model as a module of its own: what processes share, and what activations are recomputed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neural.modules.late import Module
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tasks.task import Batch


class Objective(Module):
    """A batch in, its loss out."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss, and what else is worth a curve."""
        return self.task.loss(self.model, batch)


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

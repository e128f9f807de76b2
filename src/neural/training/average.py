"""A running average of the weights (Polyak and Juditsky, 1992): often better than the last ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.training.rates import laid_out_like

if TYPE_CHECKING:
    from torch import Tensor, nn


class Average:
    """The exponential moving average of a model's parameters."""

    def __init__(self, model: nn.Module, memory: float) -> None:
        self.memory = memory
        self.live = dict(model.named_parameters())
        self.kept = {name: one.detach().clone() for name, one in self.live.items()}

    def update(self, step: int) -> None:
        """After an optimizer step, counted from 1. Early on the memory is shorter: the first weights are noise."""
        memory = min(self.memory, step / (step + 9))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.kept.values()), [one.detach() for one in self.live.values()], 1 - memory)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the average as its weights while this lasts."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        # values are copied: FSDP keeps views of a parameter's memory, and `.data` would leave them
        with torch.no_grad():
            for name, parameter in self.live.items():
                live = parameter.detach().clone()
                parameter.copy_(self.kept[name])
                self.kept[name].copy_(live)

    def state(self) -> dict[str, Tensor]:
        """To save."""
        return {f"average.{name}": one for name, one in self.kept.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """What was saved."""
        for name, one in self.kept.items():
            one.copy_(laid_out_like(self.live[name], tensors[f"average.{name}"]))

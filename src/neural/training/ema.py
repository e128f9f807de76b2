"""Exponential moving average of the weights (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch
from neural.optim.optimizer_factory import shard_like
from neural.runs.checkpoint import EMA_PREFIX

if TYPE_CHECKING:
    from torch import Tensor, nn


class ExponentialMovingAverage:
    """Exponential moving average of a model's parameters. Buffers are not averaged."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.averages = {name: param.detach().clone() for name, param in self.parameters.items()}
        """Averaged weights by parameter name. Inside `swap_in` it holds the model's own weights."""

    def update(self, step: int) -> None:
        """Update the averages after optimizer step number `step`, counted from 1.

        Early in training the decay is smaller, so that the random initial weights fade quickly.
        """
        decay = min(self.decay, step / (step + 9))  # 0.1 at step 1, 0.5 at step 9
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.averages.values()),
                [param.detach() for param in self.parameters.values()],
                1 - decay,
            )

    @contextmanager
    def swap_in(self) -> Iterator[None]:
        """Give the model the averaged weights inside the `with` block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        """Exchange the values of the parameters and of the averages."""
        # values are copied: FSDP keeps views of a parameter's memory, which assigning `.data`
        # would leave behind
        with torch.no_grad():
            for name, param in self.parameters.items():
                current = param.detach().clone()
                param.copy_(self.averages[name])
                self.averages[name].copy_(current)

    def state_dict(self) -> dict[str, Tensor]:
        """The averages, by prefixed parameter name."""
        return {f"{EMA_PREFIX}{name}": average for name, average in self.averages.items()}

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `state_dict` returned; under FSDP each process takes its shard."""
        for name, average in self.averages.items():
            average.copy_(shard_like(self.parameters[name], tensors[f"{EMA_PREFIX}{name}"]))

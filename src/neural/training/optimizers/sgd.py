"""Stochastic gradient descent (Robbins and Monro, 1951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import flag, number
from neural.modules.late import torch
from neural.training.optimizer import Optimizer

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class SGD(Optimizer):
    """Steps down the gradient, with momentum if wanted."""

    momentum: float = number("Share of the last step that is kept.", default=0.0, at_least=0, below=1)
    nesterov: bool = flag("Look ahead along the momentum.", default=False)
    weight_decay: float = number("Pull of all weights towards 0.", default=0.0, at_least=0)

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """torch's."""
        every = [parameter for _, parameter in parameters]
        looks_ahead = self.nesterov and self.momentum > 0   # without momentum there is nothing to look along
        return [
            torch.optim.SGD(
                every, lr=self.rate(0), momentum=self.momentum, nesterov=looks_ahead, weight_decay=self.weight_decay
            )
        ]

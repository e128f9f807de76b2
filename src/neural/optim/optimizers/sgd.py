"""Stochastic gradient descent (Robbins and Monro, 1951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import bool_field, float_field
from neural.nn.lazy_torch import torch
from neural.optim.lean_optimizer import lean_class
from neural.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum."""

    momentum: float = float_field("Decay of the momentum.", default=0.0, at_least=0, below=1)
    nesterov: bool = bool_field("Nesterov momentum.", default=False)
    weight_decay: float = float_field(
        "L2 penalty on all weights, added to the gradient.", default=0.0, at_least=0
    )

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """One `torch.optim.SGD`."""
        params = [param for _, param in parameters]
        # torch refuses Nesterov without momentum, where it has no effect
        use_nesterov = self.nesterov and self.momentum > 0
        return [
            lean_class(torch.optim.SGD)(
                params,
                lr=self.learning_rate_at(0),
                momentum=self.momentum,
                nesterov=use_nesterov,
                weight_decay=self.weight_decay,
            )
        ]

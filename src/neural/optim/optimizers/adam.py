"""Adam (Kingma and Ba, 2014)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.nn.lazy_torch import torch
from neural.optim.lean_optimizer import lean_class
from neural.optim.optimizer import Optimizer, supports_fused

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class Adam(Optimizer):
    """Adam: steps scaled by moving averages of the gradient and of its square."""

    beta_1: float = float_field(
        "Decay of the gradient's moving average.", default=0.9, at_least=0, below=1
    )
    beta_2: float = float_field(
        "Decay of the squared gradient's moving average.", default=0.999, at_least=0, below=1
    )
    epsilon: float = float_field("Added to the denominator.", default=1e-8, above=0)
    weight_decay: float = float_field(
        "L2 penalty on all weights, added to the gradient.", default=0.0, at_least=0
    )

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """One `torch.optim.Adam`."""
        params = [param for _, param in parameters]
        betas = (self.beta_1, self.beta_2)
        return [
            lean_class(torch.optim.Adam)(
                params,
                lr=self.learning_rate_at(0),
                betas=betas,
                eps=self.epsilon,
                weight_decay=self.weight_decay,
                fused=supports_fused(params),
            )
        ]

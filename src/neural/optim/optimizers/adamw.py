"""Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

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


class AdamW(Optimizer):
    """AdamW: Adam with decoupled weight decay."""

    beta_1: float = float_field(
        "Decay of the gradient's moving average.", default=0.9, at_least=0, below=1
    )
    beta_2: float = float_field(
        "Decay of the squared gradient's moving average.", default=0.999, at_least=0, below=1
    )
    epsilon: float = float_field("Added to the denominator.", default=1e-8, above=0)
    weight_decay: float = float_field(
        "Weight decay of matrices; biases and norms do not decay.", default=0.01, at_least=0
    )

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """One `torch.optim.AdamW` with two groups: only parameters of two or more axes decay."""
        params = [param for _, param in parameters]
        groups = [
            {
                "params": [param for param in params if param.ndim >= 2],
                "weight_decay": self.weight_decay,
            },
            {"params": [param for param in params if param.ndim < 2], "weight_decay": 0.0},
        ]
        betas, fused = (self.beta_1, self.beta_2), supports_fused(params)
        return [
            lean_class(torch.optim.AdamW)(
                groups, lr=self.learning_rate_at(0), betas=betas, eps=self.epsilon, fused=fused
            )
        ]

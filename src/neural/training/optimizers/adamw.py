"""Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import torch
from neural.training.optimizer import Optimizer, in_one_pass

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class AdamW(Optimizer):
    """Adam, with the weights pulled towards 0 beside the step, not through it."""

    beta_1: float = number("Memory of the gradient's average.", default=0.9, at_least=0, below=1)
    beta_2: float = number("Memory of the square's average.", default=0.999, at_least=0, below=1)
    epsilon: float = number("Added to the divisor.", default=1e-8, above=0)
    weight_decay: float = number("Pull of matrices towards 0; not of biases and norms.", default=0.01, at_least=0)

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """torch's, with two groups: what decays has at least two axes."""
        every = [parameter for _, parameter in parameters]
        groups = [
            {"params": [one for one in every if one.ndim >= 2], "weight_decay": self.weight_decay},
            {"params": [one for one in every if one.ndim < 2], "weight_decay": 0.0},
        ]
        betas, fused = (self.beta_1, self.beta_2), in_one_pass(every)
        return [torch.optim.AdamW(groups, lr=self.rate(0), betas=betas, eps=self.epsilon, fused=fused)]

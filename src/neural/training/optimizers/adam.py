"""Adam (Kingma and Ba, 2014)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import torch
from neural.training.optimizer import Optimizer, in_one_pass

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and its square."""

    beta_1: float = number("Memory of the gradient's average.", default=0.9, at_least=0, below=1)
    beta_2: float = number("Memory of the square's average.", default=0.999, at_least=0, below=1)
    epsilon: float = number("Added to the divisor.", default=1e-8, above=0)
    weight_decay: float = number("Pull of all weights towards 0, through the gradient.", default=0.0, at_least=0)

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """torch's."""
        every = [parameter for _, parameter in parameters]
        betas = (self.beta_1, self.beta_2)
        return [
            torch.optim.Adam(
                every, lr=self.rate(0), betas=betas, eps=self.epsilon, weight_decay=self.weight_decay,
                fused=in_one_pass(every),
            )
        ]  # fmt: skip

"""Muon (Jordan et al., 2024): steps along the nearest orthogonal matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import torch
from neural.training.optimizer import Optimizer

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer

NOT_HIDDEN = ("embedding", "output", "positional_encoding")
"""Layers at either end are no hidden matrices: AdamW moves them."""


class Muon(Optimizer):
    """Orthogonalised momentum for the matrices inside the network, AdamW for everything else."""

    momentum: float = number("Share of the last step that is kept.", default=0.95, at_least=0, below=1)
    weight_decay: float = number("Pull of matrices towards 0.", default=0.0, at_least=0)
    other_learning_rate: float | None = number(
        "AdamW's rate for embeddings, head, biases and norms; by default a tenth of Muon's.", default=None, above=0
    )

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """Two torch optimizers; the second is left out where it would have nothing to do."""
        hidden, others = [], []
        for name, parameter in parameters:
            inside = parameter.ndim == 2 and not name.startswith(NOT_HIDDEN)
            (hidden if inside else others).append(parameter)
        rate = self.rate(0)
        made: list[TorchOptimizer] = []
        if hidden:
            made.append(torch.optim.Muon(hidden, lr=rate, momentum=self.momentum, weight_decay=self.weight_decay))
        if others:
            made.append(torch.optim.AdamW(others, lr=self.other_learning_rate or rate / 10, weight_decay=0.0))
        return made

"""Muon (Jordan et al., 2024): steps along the nearest orthogonal matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from neural.language.declaration import number
from neural.modules.late import torch
from neural.training.optimizer import Optimizer, in_one_pass
from neural.training.orthogonal import muon

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer

TABLE = "table"
"""What looks vectors up rather than mapping them is called so: embeddings and learned positions."""
BLOCK = "transformer_"
"""Blocks are called so. Where the last matrix is inside one, a table makes the scores (a tied head)."""


class Muon(Optimizer):
    """Orthogonalised momentum for the matrices inside the network, AdamW for everything else."""

    momentum: float = number("Share of the last step that is kept.", default=0.95, at_least=0, below=1)
    weight_decay: float = number("Pull of matrices towards 0.", default=0.0, at_least=0)
    other_learning_rate: float | None = number(
        "AdamW's rate for embeddings, head, biases and norms; by default a tenth of Muon's.", default=None, above=0
    )

    def at_rate(self, rate: float) -> Self:
        """Both rates by the same factor."""
        other = self.other_learning_rate
        scaled = None if other is None else other * (rate / self.peak)
        return replace(self, learning_rate=rate, other_learning_rate=scaled)

    def rates(self) -> dict[str, float]:
        """Muon's, and AdamW's for everything that is no matrix inside the network."""
        other = self.peak / 10 if self.other_learning_rate is None else self.other_learning_rate
        return {**super().rates(), "other_learning_rate": other}

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """Two torch optimizers; the second is left out where it would have nothing to do."""
        named = list(parameters)
        matrices = [name for name, one in named if one.ndim == 2 and TABLE not in name.split(".")]
        tied = any(part.startswith(BLOCK) for name in matrices[-1:] for part in name.split("."))
        inside = set(matrices if tied else matrices[:-1])   # the last one makes the scores: at the end, not inside
        hidden = [one for name, one in named if name in inside]
        others = [one for name, one in named if name not in inside]
        rate = self.rate(0)
        made: list[TorchOptimizer] = []
        if hidden:
            made.append(muon()(hidden, lr=rate, momentum=self.momentum, weight_decay=self.weight_decay))
        if others:
            other, fused = self.other_learning_rate or rate / 10, in_one_pass(others)
            made.append(torch.optim.AdamW(others, lr=other, weight_decay=0.0, fused=fused))
        return made

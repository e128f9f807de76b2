"""Muon (Jordan et al., 2024): steps along the orthogonalized momentum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from neural.language.declaration import float_field
from neural.nn.lazy_torch import torch
from neural.optim.batched_muon import muon_class
from neural.optim.lean_optimizer import lean_class
from neural.optim.optimizer import Optimizer, supports_fused

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer

TABLE_NAME = "table"
"""Module name of lookup tables (embeddings, learned positions) in the networks that nn/build.py
builds."""
BLOCK_PREFIX = "transformer_"
"""Prefix of the module names of transformer blocks. If the last matrix of a network is in a block,
the output layer has no matrix of its own: it shares that of the embedding (tied weights)."""


class Muon(Optimizer):
    """Muon for the hidden matrices of the network, AdamW for everything else."""

    momentum: float = float_field("Decay of the momentum.", default=0.95, at_least=0, below=1)
    weight_decay: float = float_field("Decay of the hidden matrices.", default=0.0, at_least=0)
    other_learning_rate: float | None = float_field(
        "AdamW's rate for embeddings, output layer, biases, norms; by default a tenth of Muon's.",
        default=None,
        above=0,
    )

    def with_learning_rate(self, rate: float) -> Self:
        """Scale both learning rates by the same factor."""
        other_rate = self.other_learning_rate
        scaled_rate = None if other_rate is None else other_rate * (rate / self.peak_learning_rate)
        return replace(self, learning_rate=rate, other_learning_rate=scaled_rate)

    def peak_learning_rates(self) -> dict[str, float]:
        """The peak rate of Muon, and that of AdamW."""
        other_rate = (
            self.peak_learning_rate / 10
            if self.other_learning_rate is None
            else self.other_learning_rate
        )
        return {**super().peak_learning_rates(), "other_learning_rate": other_rate}

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """Muon for the hidden matrices, AdamW for the rest; one without parameters is left out.

        Hidden matrices are all two-dimensional weights except lookup tables and the output layer.
        The output layer is the last matrix, unless it is tied to the embedding.
        """
        named = list(parameters)
        matrices = [
            name for name, param in named if param.ndim == 2 and TABLE_NAME not in name.split(".")
        ]
        is_tied = any(
            module.startswith(BLOCK_PREFIX) for name in matrices[-1:] for module in name.split(".")
        )
        hidden_names = set(matrices if is_tied else matrices[:-1])
        hidden = [param for name, param in named if name in hidden_names]
        others = [param for name, param in named if name not in hidden_names]
        rate = self.learning_rate_at(0)
        optimizers: list[TorchOptimizer] = []
        if hidden:
            optimizers.append(
                muon_class()(
                    hidden, lr=rate, momentum=self.momentum, weight_decay=self.weight_decay
                )
            )
        if others:
            other_rate, fused = self.other_learning_rate or rate / 10, supports_fused(others)
            optimizers.append(
                lean_class(torch.optim.AdamW)(others, lr=other_rate, weight_decay=0.0, fused=fused)
            )
        return optimizers

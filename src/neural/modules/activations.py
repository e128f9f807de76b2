"""Activations by name: what a layer does to each number (softmax: to each list of numbers) at its end."""

from __future__ import annotations

from neural.modules.compiled import compiled
from neural.modules.late import Module, functional, nn, torch

TORCH_NAMES = {
    "linear": "Identity", "relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "swish": "SiLU", "elu": "ELU", "selu": "SELU",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "softplus": "Softplus", "leaky_relu": "LeakyReLU",
}  # fmt: skip
SQUARED = ("squared_relu", "relu_squared")
NAMES = (*TORCH_NAMES, "softmax", *SQUARED)
KNOWN_BY_RESULT = frozenset({"linear", "relu", "tanh", "sigmoid", "softmax"})
"""Their gradient follows from what came out; the others keep what went in as well."""


def kept(name: str) -> int:
    """Numbers kept until the backward pass, per number that comes out."""
    return 1 if name in KNOWN_BY_RESULT else 2


class SquaredReLU(Module):
    """max(x, 0)² (So et al., 2021)."""

    @compiled("neural.modules.kernels.squared_relu")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of every number alone."""
        return functional.relu(x).square()


def activation(name: str) -> nn.Module:
    """The module for an activation's name; softmax goes over the last axis."""
    if name == "softmax":
        return nn.Softmax(dim=-1)
    if name in SQUARED:
        return SquaredReLU()
    made: nn.Module = getattr(nn, TORCH_NAMES[name])()
    return made

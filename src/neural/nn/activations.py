"""Activation functions by name; softmax acts on the last axis, all others elementwise."""

from __future__ import annotations

from types import ModuleType

from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import Module, functional, nn, torch

TORCH_ACTIVATIONS = {
    "linear": "Identity",
    "relu": "ReLU",
    "gelu": "GELU",
    "silu": "SiLU",
    "swish": "SiLU",
    "elu": "ELU",
    "selu": "SELU",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "leaky_relu": "LeakyReLU",
}
"""Name in a program → class of `torch.nn`."""
SQUARED_RELU_NAMES = ("squared_relu", "relu_squared")
ACTIVATION_NAMES = (*TORCH_ACTIVATIONS, "softmax", *SQUARED_RELU_NAMES)
OUTPUT_GRADIENT_ACTIVATIONS = frozenset({"linear", "relu", "tanh", "sigmoid", "softmax"})
"""Activations whose gradient torch computes from the output alone; others save the input too."""


def saved_values_per_output(name: str) -> int:
    """How many values an activation saves for the backward pass, per output value."""
    return 1 if name in OUTPUT_GRADIENT_ACTIVATIONS else 2


def _load_kernel() -> ModuleType:
    """The module with a compiled replacement of `SquaredReLU.forward` (kernel_dispatch.py)."""
    from neural.nn.kernels import squared_relu

    return squared_relu


class SquaredReLU(Module):
    """max(x, 0)² (So et al., 2021)."""

    @use_kernel(_load_kernel)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """max(x, 0)², elementwise."""
        return functional.relu(x).square()


def build_activation(name: str) -> nn.Module:
    """The module of an activation; softmax acts on the last axis."""
    if name == "softmax":
        return nn.Softmax(dim=-1)
    if name in SQUARED_RELU_NAMES:
        return SquaredReLU()
    module: nn.Module = getattr(nn, TORCH_ACTIVATIONS[name])()
    return module

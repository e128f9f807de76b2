"""Symmetric 8-bit quantization of weights: a matrix row is integers from −127 to 127 times a scale.

The compiled decoder (compiled_decoder.py) stores the integers. All other decoders of text
generation compute with the dequantized weights, so they generate the same text. Activations are not
quantized.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int8
    from torch import Tensor

INT8_MAX = 127


def quantize_rows(
    weights: Float[Tensor, "R C"],
) -> tuple[Int8[Tensor, "R C"], Float[Tensor, " R"]]:
    """Integers, and a scale for each row. The largest absolute weight of a row becomes 127."""
    smallest = torch.finfo(torch.float32).tiny
    scale = weights.abs().amax(dim=-1).clamp(min=smallest) / INT8_MAX
    return (weights / scale.unsqueeze(-1)).round_().to(torch.int8), scale


def quantize_dequantize(weights: Float[Tensor, "R C"]) -> Float[Tensor, "R C"]:
    """The floats that the integers and scales of `quantize_rows` stand for."""
    integers, scale = quantize_rows(weights)
    return integers * scale.unsqueeze(-1)


def quantize_model(model: NetworkModule) -> NetworkModule:
    """A copy of the network whose matrices are quantized and dequantized.

    Matrices are the weights of linear maps, and the embedding table if the output layer shares it.
    """
    copied = copy.deepcopy(model)
    matrices = [module.weight for module in copied.modules() if isinstance(module, nn.Linear)]
    # a tied output has no matrix of its own
    if copied.network.layers[-1].layer.uses_embedding_table:
        matrices.append(copied.embedding_weight())
    with torch.no_grad():
        for matrix in matrices:
            matrix.copy_(quantize_dequantize(matrix))
    return copied

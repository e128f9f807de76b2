"""Symmetric 8-bit quantization of weights: a matrix row is integers from −127 to 127 times a scale.

The compiled decoder (compiled_decoder.py) stores the integers. All other decoders of text
generation compute with the dequantized weights, so they generate the same text.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int8

INT8_MAX = np.float32(127)


def quantize_rows(
    weights: Float[np.ndarray, "*R C"],
) -> tuple[Int8[np.ndarray, "*R C"], Float[np.ndarray, "*R"]]:
    """Integers, and a scale for each row. The largest absolute weight of a row becomes 127."""
    scale = np.maximum(np.abs(weights).max(axis=-1), np.finfo(np.float32).tiny) / INT8_MAX
    return np.rint(weights / scale[..., None]).astype(np.int8), scale


def quantize_model(model: NetworkModule) -> NetworkModule:
    """A copy of the network whose matrices are quantized and dequantized.

    Matrices are the weights of linear maps, and the embedding table if the output layer shares it.
    """
    copied = copy.deepcopy(model)
    matrices = [module.weight for module in copied.modules() if isinstance(module, nn.Linear)]
    if copied.network.layers[
        -1
    ].layer.uses_embedding_table:  # a tied output: it has no matrix of its own
        matrices.append(copied.embedding_weight())
    with torch.no_grad():
        for matrix in matrices:
            integers, scale = quantize_rows(matrix.detach().numpy())
            matrix.copy_(torch.from_numpy(integers * scale[:, None]))
    return copied

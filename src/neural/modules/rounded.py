"""A network with 8-bit weights: every row of a matrix is whole numbers up to 127 times one scale.

The compiled step keeps them as such. All other ways of decoding compute with the same rounded numbers, so they still
give the same text.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.build import Built
from neural.modules.late import nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int8

MOST = np.float32(127)


def whole(weights: Float[np.ndarray, "*R C"]) -> tuple[Int8[np.ndarray, "*R C"], Float[np.ndarray, "*R"]]:
    """Whole numbers and a scale for each row, whose largest weight becomes 127."""
    scale = np.maximum(np.abs(weights).max(axis=-1), np.finfo(np.float32).tiny) / MOST
    return np.rint(weights / scale[..., None]).astype(np.int8), scale


def rounded(model: Built) -> Built:
    """A copy whose matrices are such; a table too where it makes the scores."""
    copied = copy.deepcopy(model)
    matrices = [one.weight for one in copied.modules() if isinstance(one, nn.Linear)]
    if copied.network.layers[-1].layer.uses_table:
        matrices.append(copied.table())
    with torch.no_grad():
        for one in matrices:
            numbers, scale = whole(one.detach().numpy())
            one.copy_(torch.from_numpy(numbers * scale[:, None]))
    return copied

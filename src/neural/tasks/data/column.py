"""An array as tensors, a batch at a time. What lies on disk stays there until it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor


LARGE = 1 << 24
"""Numbers from which on an array stays as it is, and only what a batch needs of it is made a tensor."""


class Column:
    """One named array of a data set."""

    def __init__(self, array: np.ndarray, dtype: torch.dtype, scale: float = 1.0) -> None:
        self.array, self.dtype, self.scale = array, dtype, scale
        later = scale != 1.0 or isinstance(array, np.memmap) or array.size > LARGE
        self.tensor: Tensor | None = None if later else torch.tensor(array, dtype=dtype)

    def take(self, examples: np.ndarray) -> Tensor:
        """The examples of these numbers."""
        if self.tensor is not None:
            return self.tensor[torch.from_numpy(examples)]
        taken = torch.tensor(self.array[examples], dtype=self.dtype)
        return taken * self.scale if self.scale != 1.0 else taken

    def __len__(self) -> int:
        return len(self.array)

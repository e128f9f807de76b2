"""Rows that have no shape of their own, in the shape that the network declares."""

from __future__ import annotations

import numpy as np

from neural.language.network import Network
from neural.language.shapes import show
from neural.tasks.task import TaskError


def shaped(rows: np.ndarray, network: Network, where: str) -> np.ndarray:
    """Rows (N, F) as the network takes them; one open size is what remains."""
    width = rows.shape[1]
    opened = [dim for dim in network.input if isinstance(dim, str)]
    known = int(np.prod([dim for dim in network.input if isinstance(dim, int)], dtype=int))
    if known != width if not opened else (width % known or len(opened) > 1):
        raise TaskError(
            f"{where}: an example has {width} numbers, but {network.name} takes {show(network.input)}"
            + ("" if opened else f": {known}")
        )
    return rows.reshape(len(rows), *(-1 if isinstance(dim, str) else dim for dim in network.input))

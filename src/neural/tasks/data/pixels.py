"""Pictures → arrays of bytes in the size and the colours that a network declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural.language.network import Network
from neural.language.shapes import show
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from PIL.Image import Image

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Grey, colours, colours with transparency."""
SCALE = 1 / 255


class Pixels:
    """What a network wants of a picture: (height, width) or (height, width, channels); open sizes are the picture's."""

    def __init__(self, network: Network, where: str) -> None:
        self.where, self.network = where, network
        height, width, channels = (*network.input, 1)[:3] if len(network.input) in (2, 3) else (0, 0, 0)
        if network.ids or channels not in MODES:
            raise TaskError(
                f"{where}: pictures need `input: (height, width, channels)` with 1, 3 or 4 channels, "
                f"but {network.name} takes {'ids' if network.ids else show(network.input)}"
            )
        self.height, self.width, self.mode = height, width, MODES[int(channels)]
        self.size: tuple[int, int] | None = None
        """Of the first picture, where the network leaves sizes open."""

    def array(self, picture: Image, name: str) -> np.ndarray:
        """One picture, 0 to 255; the floats from 0 to 1 are made of a batch at a time."""
        width = self.width if isinstance(self.width, int) else picture.width
        height = self.height if isinstance(self.height, int) else picture.height
        self.size = self.size or (width, height)
        if self.size != (width, height):
            raise TaskError(
                f"{self.where}: {name} is {width} × {height}, the first picture {self.size[0]} × {self.size[1]}; "
                f"write the size in `input:` to have all resized"
            )
        fitted = picture.convert(self.mode)
        if fitted.size != self.size:
            fitted = fitted.resize(self.size)
        return np.asarray(fitted, dtype=np.uint8).reshape(height, width, *self.network.input[2:])

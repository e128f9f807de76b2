"""Images → uint8 arrays of the size and colour mode that a network takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.language.network import Network
from neural.language.shapes import format_shape

if TYPE_CHECKING:
    from PIL.Image import Image

COLOR_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's colour mode by number of channels: grey, RGB, RGB with alpha."""
PIXEL_SCALE = 1 / 255
"""Factor from uint8 pixels to the range 0 to 1."""


class ImageConverter:
    """Resizes images to a network's input, (height, width) or (height, width, channels).

    If the program leaves height or width open (a string such as "T" instead of a number), the first
    image sets it, and all images must have it.
    """

    def __init__(self, network: Network, data_name: str) -> None:
        self.data_name, self.network = data_name, network
        height, width, channels = (
            (*network.input, 1)[:3] if len(network.input) in (2, 3) else (0, 0, 0)
        )
        if network.takes_token_ids or channels not in COLOR_MODES:
            raise TaskError(
                f"{data_name}: images need `input: (height, width, channels)` with 1, 3 or 4 "
                f"channels, but {network.name} takes "
                f"{'token ids' if network.takes_token_ids else format_shape(network.input)}"
            )
        self.height, self.width, self.mode = height, width, COLOR_MODES[int(channels)]
        self.size: tuple[int, int] | None = None
        """(width, height) of all images; set by the first one."""

    def convert(self, image: Image, name: str) -> np.ndarray:
        """One image as uint8, 0 to 255. `name` is that of the image in messages.

        The dataset multiplies by PIXEL_SCALE later, per batch, so that images take less memory.
        """
        width = self.width if isinstance(self.width, int) else image.width
        height = self.height if isinstance(self.height, int) else image.height
        self.size = self.size or (width, height)
        if self.size != (width, height):
            raise TaskError(
                f"{self.data_name}: {name} is {width} × {height}, the first image "
                f"{self.size[0]} × {self.size[1]}; set the size in `input:` to resize all images"
            )
        converted = image.convert(self.mode)
        if converted.size != self.size:
            converted = converted.resize(self.size)
        return np.asarray(converted, dtype=np.uint8).reshape(height, width, *self.network.input[2:])

"""Pictures in one folder per class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.tasks.data.folders import Labelled, class_folders, holds
from neural.tasks.data.packages import needed
from neural.tasks.data.pixels import SCALE, Pixels
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""By content, whatever a file is called: pillow would hand others to programs of the system."""
MOST = 1 << 26
"""Pixels: a picture is unpacked whole before it is made smaller."""


class Images(Source):
    """Resized and converted to the network's input, floats from 0 to 1."""

    looks: ClassVar[str] = "a folder with one folder of pictures per class"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """A folder with pictures in subfolders."""
        return isinstance(where, Path) and where.is_dir() and holds(where, SUFFIXES)

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """All of them into memory, as bytes."""
        found = class_folders(where, SUFFIXES)
        pixels = Pixels(network, where.name)
        train = arrays(found.train, pixels)
        valid = arrays(found.valid, pixels) if found.valid else None
        return Examples(where=where.name, train=train, valid=valid, scale=SCALE, classes=found.classes)


def arrays(labelled: Labelled, pixels: Pixels) -> dict[str, np.ndarray]:
    """The pictures and their classes."""
    pillow = needed("PIL.Image", for_="reading pictures", install="pillow")
    x = []
    for file in labelled.files:
        try:
            with pillow.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > MOST:
                    raise TaskError(
                        f"{pixels.where}: {file.parent.name}/{file.name} has {picture.width:,} × {picture.height:,} "
                        f"pixels; at most {MOST:,} are read: make it smaller first"
                    )
                x.append(pixels.array(picture, file.name))
        except TaskError:
            raise
        except Exception:   # a broken picture makes its decoder raise anything
            raise TaskError(f"{pixels.where}: {file.parent.name}/{file.name} is no picture that can be read") from None
    return {"x": np.stack(x), "y": labelled.y}

"""Images in one folder per class, as arrays of the network's input size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.data.class_folders import LabelledFiles, find_class_folders, has_class_folders
from neural.data.image_conversion import PIXEL_SCALE, ImageConverter
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""Formats that pillow may decode, recognised by content. For others, such as EPS, pillow would
start other programs, which is unsafe."""
MAX_PIXELS = 1 << 26
"""Larger images are refused: an image is decoded completely before it is resized."""


class Images(DataSource):
    """Images, resized and converted to the network's input, floats from 0 to 1."""

    description: ClassVar[str] = "a folder with one folder of images per class"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A folder with images in subfolders."""
        return (
            isinstance(location, Path)
            and location.is_dir()
            and has_class_folders(location, SUFFIXES)
        )

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """Load all images into memory as uint8."""
        folders = find_class_folders(location, SUFFIXES)
        converter = ImageConverter(network, location.name)
        train = load_images(folders.train, converter)
        valid = load_images(folders.valid, converter) if folders.valid else None
        return Examples(
            data_name=location.name,
            train=train,
            valid=valid,
            scale=PIXEL_SCALE,
            classes=folders.classes,
        )


def load_images(labelled: LabelledFiles, converter: ImageConverter) -> dict[str, np.ndarray]:
    """Arrays of images, `x`, and their class numbers, `y`."""
    from PIL import Image

    images = []
    for file in labelled.files:
        try:
            with Image.open(file, formats=FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise TaskError(
                        f"{converter.data_name}: {file.parent.name}/{file.name} has "
                        f"{image.width:,} × {image.height:,} pixels; at most {MAX_PIXELS:,} are "
                        "read: make it smaller first"
                    )
                images.append(converter.convert(image, file.name))
        except TaskError:
            raise
        except Exception:  # decoders raise many types on a broken image
            raise TaskError(
                f"{converter.data_name}: {file.parent.name}/{file.name} cannot be read as an image"
            ) from None
    return {"x": np.stack(images), "y": labelled.labels}

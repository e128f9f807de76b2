"""Images as inputs of `neural watch`: load, resize and normalise them as the model expects.

    subject = select_vision_part(subject)                  CLIP → its vision part
    inputs = prepare_images(subject, [Path("cat.png")])

The folder's own image processor decides on size, cropping and normalisation. Without one, images
are resized to the size in the configuration and normalised to −1 … 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.patch_positions import PIXELS_INPUT, find_pixels
from neural.capture.probe_image import encode_picture
from neural.core.files import format_missing_file
from neural.data.sources.images import FORMATS
from neural.interpret.foreign_models import TargetError
from neural.interpret.inputs import Inputs
from neural.interpret.subject import Subject
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from neural.capture.capture_result import Capture

VISION_PARTS = ("vision_model", "vision_tower")
"""Names of the modules that read the images of models for texts and images."""
DEFAULT_MEAN = DEFAULT_STD = 0.5
"""Normalisation without an image processor: pixels become −1 … 1."""
MAX_IMAGE_PIXELS = 100_000_000
"""Larger files are refused: they would take gigabytes before they are resized."""


def reads_images(subject: Subject) -> bool:
    """Whether images are the main input of the model."""
    return getattr(subject.model, "main_input_name", None) == PIXELS_INPUT


def select_vision_part(subject: Subject) -> Subject:
    """The part of a model for texts and images that reads the images; other models as they are."""
    if reads_images(subject):
        return subject
    for path, module in subject.model.named_modules():
        if path.rpartition(".")[2] in VISION_PARTS and hasattr(module, "config"):
            return replace(
                subject,
                model=module,
                tokenizer=None,
                source=f"{subject.source}, {path}",
            )
    return subject


def prepare_images(subject: Subject, paths: Sequence[Path]) -> Inputs:
    """Load image files as one batch; TargetError if a file or the model cannot be used."""
    if not reads_images(subject) and subject.config is not None:
        raise TargetError(f"{subject.name} reads no images: give a text with --input")
    images = [_load_image(path) for path in paths]
    notes: list[str] = []
    if subject.image_processor is None:
        pixels = _convert_images(subject, images, notes)
        mean, std = (DEFAULT_MEAN,) * pixels.shape[1], (DEFAULT_STD,) * pixels.shape[1]
    else:
        pixels, mean, std = _process_images(subject, images)
    pixels = pixels.to(subject.dtype)
    count, _, height, width = pixels.shape
    return Inputs(
        {PIXELS_INPUT: pixels} if subject.config is not None else (pixels,),
        f"{count} image{'s' * (count != 1)} of {height} × {width} pixels",
        notes=notes,
        pixel_mean=mean,
        pixel_std=std,
    )


def paint_pictures(capture: Capture, prepared: Inputs) -> None:
    """Give the images of a capture their true colours, which need the processor's normalisation."""
    pixels = find_pixels(prepared.batch)
    if pixels is None or not prepared.pixel_mean:
        return
    capture.images = [
        replace(
            image,
            png=encode_picture(
                values, *image.picture_size, mean=prepared.pixel_mean, std=prepared.pixel_std
            ),
        )
        for image, values in zip(capture.images, pixels, strict=False)
    ]


def _load_image(path: Path) -> Image:
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not path.is_file():
        raise TargetError(format_missing_file(path))
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_IMAGE_PIXELS:
                raise TargetError(
                    f"{path} has {image.width:,} × {image.height:,} pixels: make it smaller first"
                )
            # cameras store the rotation beside the pixels
            return ImageOps.exif_transpose(image).convert("RGB")
    except TargetError:
        raise
    except UnidentifiedImageError:
        raise TargetError(f"{path} is no image that Pillow can read: give a PNG or JPEG") from None
    except Exception as error:  # decoders raise many types on a broken image, also MemoryError
        reason = str(error) or type(error).__name__
        raise TargetError(f"{path} cannot be read as an image: {reason}") from None


def _process_images(
    subject: Subject, images: list[Image]
) -> tuple[Tensor, tuple[float, ...], tuple[float, ...]]:
    """Pixel values of the image processor, and its mean and standard deviation."""
    processor = subject.image_processor
    try:
        pixels = processor(images, return_tensors="pt")[PIXELS_INPUT]
    except Exception as error:  # processors of many models raise many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TargetError(f"the image processor of {subject.name} failed: {reason}") from None
    if not torch.is_tensor(pixels) or pixels.ndim != 4:
        raise TargetError(
            f"the image processor of {subject.name} cuts images into patches itself: such models "
            "are watched in Python only, neural.watch(model, inputs)"
        )
    is_normalised = getattr(processor, "do_normalize", False)
    mean = tuple(map(float, getattr(processor, "image_mean", None) or ())) if is_normalised else ()
    std = tuple(map(float, getattr(processor, "image_std", None) or ())) if is_normalised else ()
    return pixels, mean, std


def _convert_images(subject: Subject, images: list[Image], notes: list[str]) -> Tensor:
    """Pixel values without a processor, resized to the configuration's `image_size`."""
    size = getattr(subject.config, "image_size", None)
    height, width = _to_pair(size) or (images[0].height, images[0].width)
    channels = int(getattr(subject.config, "num_channels", 3) or 3)
    if channels not in (1, 3):
        raise TargetError(
            f"{subject.name} takes images with {channels} channels: save its image processor into "
            "the folder, or use Python, neural.watch(model, inputs)"
        )
    notes.append(
        f"the folder has no image processor: images are resized to {height} × {width} and "
        "normalised to −1 … 1"
    )
    mode = "RGB" if channels == 3 else "L"
    arrays = [np.asarray(image.convert(mode).resize((width, height))) for image in images]
    stacked = np.stack(arrays).reshape(len(arrays), height, width, channels)
    values = (stacked.astype(np.float32) / 255 - DEFAULT_MEAN) / DEFAULT_STD
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 3, 1, 2)))


def _to_pair(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return size, size
    if isinstance(size, tuple | list) and len(size) == 2:
        return int(size[0]), int(size[1])
    return None

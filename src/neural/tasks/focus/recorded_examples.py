"""A few validation examples whose focus is recorded during training, for the pages of a run.

A segment is shown as a small picture (`images`), as a word (`words`) or only by its position. The
pictures, labels and foregrounds are metadata of the run, written once (EXAMPLES_KEY). The focus
weights (FOCUS_ARRAY) and the predictions (PREDICTION_ARRAY) are arrays of every validation.

The examples depend on the data alone, so runs that differ by their paradigm or seed record the same
ones.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.nn.lazy_torch import torch
from neural.tasks.focus.data import SegmentData, SegmentSplit

if TYPE_CHECKING:
    from neural.tasks.focus.task import Focus

EXAMPLES_KEY = "focus/examples"
"""Metadata key of the examples. It has no declared type, which would be checked whenever any
metadata of the run is read; `RecordedExamples.from_metadata` checks it."""
FOCUS_ARRAY = "valid/example_focus"
"""Array of a validation: focus weights, [example, tile]; NaN beyond the tiles of an example."""
PREDICTION_ARRAY = "valid/example_predictions"
"""Array of a validation, [example, 3]: predicted class, its probability, probability of the label."""
MAX_EXAMPLES, MIN_EXAMPLES = 24, 6
"""Recorded examples: fewer than MAX_EXAMPLES where their pictures exceed MAX_IMAGE_BYTES, or where
they are more than MAX_SHARE of the validation examples."""
MAX_SHARE = 0.05
"""Recorded share of the validation examples: a validation computes the focus of these twice."""
MAX_VALIDATION_SEGMENTS = 1 << 15
"""Largest number of segments that are computed at once."""
MAX_TILES = 24
"""Recorded segments of an example: its foreground, then the first others."""
MAX_TILE_SIDE = 16
"""Larger pictures are reduced to at most this many pixels along each side."""
MAX_IMAGE_BYTES = 64_000
"""Size of all pictures, unless MIN_EXAMPLES need more."""
MAX_WORD_CHARS = 40
"""Longer words are cut."""


@dataclass(frozen=True, kw_only=True)
class RecordedExamples:
    """Validation examples to record: their tiles, the segments that are shown."""

    labels: list[int]
    """Class index of each example."""
    tiles: list[list[int]]
    """Segments that are recorded, by example, ascending."""
    foreground: list[list[int]] | None
    """Segments that decide the label, by example; empty if unknown. None: unknown for all."""
    segments: int
    """Number of segments m of an example, padding included."""
    image_shape: tuple[int, int, int] | None = None
    """Height, width and channels (1 or 3) of a tile; None without pictures."""
    images: bytes = b""
    """Pixels of all tiles, example after example."""
    words: list[list[str]] | None = None
    """Words of the tiles, if segments are words."""

    def to_metadata(self) -> dict[str, Any]:
        """JSON data for the metadata of a run."""
        return {
            "labels": self.labels,
            "tiles": self.tiles,
            "foreground": self.foreground,
            "segments": self.segments,
            "image_shape": None if self.image_shape is None else list(self.image_shape),
            "images": base64.b64encode(self.images).decode(),
            "words": self.words,
        }

    @classmethod
    def from_metadata(cls, value: Any) -> RecordedExamples | None:
        """The examples of a run's metadata; None if there are none or they are damaged."""
        if not isinstance(value, Mapping):
            return None
        try:
            labels, tiles = list(map(int, value["labels"])), _int_lists(value["tiles"])
            foreground, shape = value["foreground"], value["image_shape"]
            examples = cls(
                labels=labels,
                tiles=tiles,
                foreground=None if foreground is None else _int_lists(foreground),
                segments=int(value["segments"]),
                image_shape=None if shape is None else _parse_shape(shape),
                images=base64.b64decode(value["images"]),
                words=None
                if value["words"] is None
                else [list(map(str, row)) for row in value["words"]],
            )
        except (KeyError, TypeError, ValueError):
            return None
        return examples if examples._is_consistent() else None

    def _is_consistent(self) -> bool:
        """Whether all lists have an entry per example, and the pictures the right size."""
        count, tile_counts = len(self.labels), [len(row) for row in self.tiles]
        lists = [self.tiles, self.foreground, self.words]
        shape = self.image_shape
        return (
            count > 0
            and all(len(rows) == count for rows in lists if rows is not None)
            and (self.words is None or [len(row) for row in self.words] == tile_counts)
            and (
                shape is None
                or (
                    min(shape) > 0
                    and shape[2] in (1, 3)
                    and len(self.images) == sum(tile_counts) * math.prod(shape)
                )
            )
        )

    def image_of(self, example: int) -> bytes:
        """Pixels of the tiles of one example; empty without pictures."""
        size = 0 if self.image_shape is None else math.prod(self.image_shape)
        start = size * sum(len(row) for row in self.tiles[:example])
        return self.images[start : start + size * len(self.tiles[example])]

    def record(self, task: Focus, model: Any) -> dict[str, np.ndarray]:
        """Arrays of a validation: focus weights and predictions of the examples.

        The caller has set evaluation mode and disabled gradients.
        """
        valid, count = task.data.splits["valid"], len(self.labels)
        device = next(model.parameters()).device
        paradigm = task.current_paradigm(model)
        focus, predictions = [], []
        batch_size = max(1, MAX_VALIDATION_SEGMENTS // self.segments)
        for start in range(0, count, batch_size):
            batch = valid.take(slice(start, min(count, start + batch_size)))
            scored = task.score_batch(
                model, {name: tensor.to(device) for name, tensor in batch.items()}
            )
            log_p = paradigm.predict(scored).float()
            columns = [
                log_p.argmax(dim=-1).float(),
                log_p.amax(dim=-1).exp(),
                scored.gather_label(log_p).exp(),
            ]
            focus.append(paradigm.focus_weights(scored.scores).float().cpu().numpy())
            predictions.append(torch.stack(columns, dim=-1).cpu().numpy())
        weights = np.full((len(self.tiles), max(map(len, self.tiles))), np.nan, np.float32)
        for row, values, tiles in zip(weights, np.concatenate(focus), self.tiles, strict=True):
            row[: len(tiles)] = values[tiles]
        return {FOCUS_ARRAY: weights, PREDICTION_ARRAY: np.concatenate(predictions)}


def _parse_shape(shape: Any) -> tuple[int, int, int]:
    height, width, channels = map(int, shape)
    return height, width, channels


def _int_lists(rows: Any) -> list[list[int]]:
    return [list(map(int, row)) for row in rows]


def select_examples(data: SegmentData) -> RecordedExamples:
    """Choose the first validation examples, as many as MAX_EXAMPLES and the other limits allow."""
    split = data.splits["valid"]
    count = max(MIN_EXAMPLES, min(MAX_EXAMPLES, int(MAX_SHARE * len(split))))
    tiles = [_select_tiles(split, example) for example in range(min(count, len(split)))]
    shape = None if data.vocabulary else _image_shape(data.shape)
    if shape is not None:
        fitting = MAX_IMAGE_BYTES // max(1, math.prod(shape) * max(map(len, tiles)))
        tiles = tiles[: max(MIN_EXAMPLES, fitting)]
    count = len(tiles)
    members = [split.members[example, row] for example, row in enumerate(tiles)]
    words = None
    if data.vocabulary:
        # a segment of a text is one token id
        ids = [split.unit_bank[row].reshape(len(row), -1)[:, 0] for row in members]
        words = [[data.vocabulary[int(token)][:MAX_WORD_CHARS] for token in row] for row in ids]
    return RecordedExamples(
        labels=split.labels[:count].tolist(),
        tiles=tiles,
        foreground=None
        if split.foreground is None
        else [np.flatnonzero(row).tolist() for row in split.foreground[:count]],
        segments=data.segments,
        image_shape=shape,
        images=b"" if shape is None else _encode_images(split, np.concatenate(members), shape),
        words=words,
    )


def _select_tiles(split: SegmentSplit, example: int) -> list[int]:
    """At most MAX_TILES segments that are not padding: the foreground, then the first others."""
    real = np.arange(split.members.shape[1])
    if split.mask is not None:
        real = real[split.mask[example]]
    if split.foreground is not None:
        # stable: within the foreground and within the others, by position
        real = real[np.argsort(~split.foreground[example][real], kind="stable")]
    return sorted(real[:MAX_TILES].tolist())


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Shape of the picture of a segment: of an image, or of a vector of a square number of pixels.

    None for segments that are no pictures.
    """
    if len(shape) == 1:
        side = math.isqrt(shape[0])
        if side < 4 or side * side != shape[0]:  # a short vector is hardly a picture
            return None
        height, width, channels = side, side, 1
    elif len(shape) == 2:
        height, width, channels = *shape, 1
    elif len(shape) == 3 and shape[2] in (1, 3):
        height, width, channels = shape
    else:
        return None
    factor = _pooling_factor(height, width)
    return height // factor, width // factor, channels


def _pooling_factor(height: int, width: int) -> int:
    """How many pixels along each side are averaged into one."""
    return max(1, math.ceil(max(height, width) / MAX_TILE_SIDE))


def _encode_images(split: SegmentSplit, units: np.ndarray, shape: tuple[int, int, int]) -> bytes:
    """Pixels of the units as bytes; the smallest value of all is 0, the largest 255.

    Images of bytes keep their values.
    """
    pixels = split.unit_bank[units]
    is_bytes = pixels.dtype == np.uint8
    height, width, channels = shape
    if pixels.ndim == 2:
        side = math.isqrt(pixels.shape[1])
        pixels = pixels.reshape(len(pixels), side, side, 1)
    elif pixels.ndim == 3:
        pixels = pixels[..., None]
    factor = _pooling_factor(*pixels.shape[1:3])
    pixels = pixels[:, : height * factor, : width * factor].astype(np.float64)
    pooled = pixels.reshape(len(pixels), height, factor, width, factor, channels).mean(axis=(2, 4))
    if not is_bytes:
        low, high = float(pooled.min()), float(pooled.max())
        pooled = (pooled - low) * (255 / (high - low) if high > low else 0.0)
    return np.rint(pooled).astype(np.uint8).tobytes()

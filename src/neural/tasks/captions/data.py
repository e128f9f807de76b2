"""Pictures with captions: the common form of generated scenes (scenes.py) and of the user's files.

A picture is given as m regions with d features each. For each word of a caption, the data may say
which region the word is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.input_checks import check_finite, format_array_shape
from neural.data.numpy_files import load_npz
from neural.nn.lazy_torch import torch
from neural.tasks.focus.data import SPLIT_NAMES, split_three_ways
from neural.tasks.focus.token_files import read_json_records

if TYPE_CHECKING:
    from torch import Tensor

END_ID, UNKNOWN_ID = 0, 1
"""END is the token before the first and after the last word of a caption, and padding. UNKNOWN
stands for words that are not in the vocabulary."""
NO_REGION = -1
"""Index for words that are about no region, or an unknown one."""


@dataclass(frozen=True, kw_only=True)
class CaptionSplit:
    """Training, validation or test captions of pictures, as padded arrays."""

    regions: np.ndarray
    """Features of the regions of all pictures, (pictures, m, d)."""
    picture_ids: np.ndarray
    """Index of the picture of each caption, (captions,)."""
    word_ids: np.ndarray
    """Word ids, padded with END, (captions, T)."""
    lengths: np.ndarray
    """Number of words of each caption, including one END, (captions,)."""
    word_regions: np.ndarray
    """Index of the region of each word, or NO_REGION, (captions, T)."""

    @classmethod
    def from_captions(
        cls,
        regions: np.ndarray,
        picture_ids: np.ndarray,
        captions: Sequence[Sequence[str]],
        word_regions: Sequence[Sequence[int | None]],
        vocabulary: Sequence[str],
    ) -> CaptionSplit:
        """Create the padded arrays from captions (lists of words).

        `word_regions` holds the region index of each word of each caption.
        """
        word_to_id = {word: word_id for word_id, word in enumerate(vocabulary)}
        max_length = 1 + max(map(len, captions), default=0)
        word_id_rows = np.full((len(captions), max_length), END_ID, dtype=np.int64)
        region_rows = np.full((len(captions), max_length), NO_REGION, dtype=np.int64)
        for row, (caption, regions_of_words) in enumerate(zip(captions, word_regions, strict=True)):
            word_id_rows[row, : len(caption)] = [
                word_to_id.get(word, UNKNOWN_ID) for word in caption
            ]
            region_rows[row, : len(regions_of_words)] = [
                NO_REGION if region is None else region for region in regions_of_words
            ]
        lengths = np.array([len(caption) + 1 for caption in captions], dtype=np.int64)
        return cls(
            regions=regions,
            picture_ids=np.asarray(picture_ids),
            word_ids=word_id_rows,
            lengths=lengths,
            word_regions=region_rows,
        )

    def __len__(self) -> int:
        return len(self.word_ids)

    def take(self, captions: np.ndarray | slice) -> dict[str, Tensor]:
        """A batch of captions by index, as tensors.

        `x` are the regions (B, m, d). The others are (B, T): the word ids `y`; `previous_words`,
        the id before each word, END before the first; `word_mask`, True up to the first END,
        included; `region`, the region index of each word.
        """
        word_ids = self.word_ids[captions]
        previous_words = np.concatenate(
            [np.full((len(word_ids), 1), END_ID), word_ids[:, :-1]], axis=1
        )
        word_mask = np.arange(word_ids.shape[1]) < self.lengths[captions, None]
        batch = {
            "x": self.regions[self.picture_ids[captions]],
            "previous_words": previous_words,
            "y": word_ids,
            "word_mask": word_mask,
            "region": self.word_regions[captions],
        }
        return {name: torch.from_numpy(array) for name, array in batch.items()}

    def references(self) -> dict[int, list[tuple[int, ...]]]:
        """Reference captions of each picture, as word ids without END."""
        captions: dict[int, list[tuple[int, ...]]] = {}
        for picture, word_ids, length in zip(
            self.picture_ids.tolist(), self.word_ids.tolist(), self.lengths, strict=True
        ):
            captions.setdefault(picture, []).append(tuple(word_ids[: length - 1]))
        return captions


@dataclass(frozen=True, kw_only=True)
class CaptionData:
    """Training, validation and test captions of one dataset."""

    data_name: str
    splits: dict[str, CaptionSplit]
    vocabulary: tuple[str, ...]
    """Words by id."""
    grid: tuple[int, int] | None = None
    """Rows and columns of the regions, if they form a grid."""
    cell_size: int = 0
    """If the features of a region start with the RGB values of a square image: its side in pixels.
    Else 0."""

    @property
    def segments(self) -> int:
        """Number of regions of a picture, m."""
        return int(self.splits["train"].regions.shape[1])

    @property
    def features(self) -> int:
        """Number of features of a region, d."""
        return int(self.splits["train"].regions.shape[2])

    def render_picture(self, regions: np.ndarray) -> list[list[list[int]]] | None:
        """The picture with these regions (m, d), as rows of RGB pixels, 0 to 255.

        None if the features hold no image.
        """
        if self.grid is None or not self.cell_size:
            return None
        (rows, columns), side = self.grid, self.cell_size
        cells = regions[:, : 3 * side * side].reshape(rows, columns, side, side, 3)
        pixels = cells.transpose(0, 2, 1, 3, 4).reshape(rows * side, columns * side, 3)
        return np.rint(255 * np.clip(pixels, 0, 1)).astype(int).tolist()


def build_vocabulary(captions: Iterable[Sequence[str]], min_count: int = 1) -> tuple[str, ...]:
    """The tokens END and UNKNOWN, then all words that occur at least `min_count` times, sorted."""
    counts = Counter(word for words in captions for word in words)
    return (
        "<end>",
        "<unknown>",
        *sorted(word for word, count in counts.items() if count >= min_count),
    )


MIN_PICTURES = 10
"""Smallest number of pictures in a file, so that every split has some; fewer are an error."""


def read_captions(
    path: Path, captions: Path, *, vocabulary: tuple[str, ...] | None, seed: int
) -> CaptionData:
    """Read regions from the `.npz` file `path` and their captions from the JSON file `captions`.

    Pictures are split at random, each with all its captions. The vocabulary is that of the training
    captions, unless given.
    """
    regions = read_regions(path)
    parsed = [
        _parse_caption(record, f"{captions.name}, {location}", index, regions.shape)
        for index, (location, record) in enumerate(read_json_records(captions))
    ]
    uncaptioned = sorted(set(range(len(regions))) - {picture for picture, _, _ in parsed})
    if uncaptioned:
        raise TaskError(
            f"{captions.name}: picture {uncaptioned[0]} of {path.name} has no caption "
            f"(one of {len(uncaptioned)})"
        )
    split_pictures = dict(zip(SPLIT_NAMES, split_three_ways(len(regions), seed), strict=True))
    records_by_split = {
        name: [record for record in parsed if record[0] in set(pictures.tolist())]
        for name, pictures in split_pictures.items()
    }
    words_by_id = vocabulary or build_vocabulary(
        [words for _, words, _ in records_by_split["train"]]
    )
    splits = {
        name: CaptionSplit.from_captions(
            regions,
            np.array([record[0] for record in records], dtype=np.int64),
            [record[1] for record in records],
            [record[2] for record in records],
            words_by_id,
        )
        for name, records in records_by_split.items()
    }
    return CaptionData(data_name=path.name, splits=splits, vocabulary=words_by_id)


def read_regions(path: Path, min_pictures: int = MIN_PICTURES) -> np.ndarray:
    """Region features (N, m, d). Raises TaskError if they cannot be used."""
    arrays = load_npz(path)
    if "regions" not in arrays:
        hint = suggest_name("regions", arrays) or f"there are {', '.join(arrays) or 'none'}"
        raise TaskError(f"{path.name} has no array `regions`; {hint}")
    x = arrays["regions"]
    if x.ndim != 3 or x.dtype.kind not in "biuf":
        raise TaskError(
            f"{path.name}: `regions` is {format_array_shape(x)} of {x.dtype}, but must be numbers "
            "of shape (N, m, d)"
        )
    if x.shape[1] < 2:
        raise TaskError(
            f"{path.name}: a picture has one region, which leaves nothing to choose; at least 2 "
            "are needed"
        )
    if len(x) < min_pictures:
        raise TaskError(
            f"{path.name}: {len(x)} pictures are too few; at least {min_pictures} are needed"
        )
    check_finite(x, f"{path.name}: `regions`")
    return x.astype(np.float32)


def _parse_caption(
    record: Any, location: str, index: int, shape: tuple[int, ...]
) -> tuple[int, list[str], list[int | None]]:
    """Parse a record into (picture index, words, region of each word).

    `index` is the index of the record; it is also that of the picture, unless the record has the
    key `picture`. `shape` is (pictures, m, d). Errors name `location`.
    """
    if not isinstance(record, dict) or "caption" not in record:
        raise TaskError(f'{location}: the caption is missing; write {{"caption": "a red circle"}}')
    words = record["caption"].split() if isinstance(record["caption"], str) else record["caption"]
    if not (
        isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)
    ):
        raise TaskError(f"{location}: `caption` must be a text or a non-empty list of words")
    picture, (count, m, _) = record.get("picture", index), shape
    if not isinstance(picture, int) or isinstance(picture, bool) or not 0 <= picture < count:
        raise TaskError(
            f"{location}: `picture` is {picture}, but there are {count} pictures: 0 … {count - 1}"
        )
    regions = record.get("regions", [None] * len(words))
    if not isinstance(regions, list) or len(regions) != len(words):
        raise TaskError(
            f"{location}: `regions` must hold a region or null for each of the {len(words)} words"
        )
    for word, region in zip(words, regions, strict=True):
        if region is not None and not (isinstance(region, int) and 0 <= region < m):
            raise TaskError(
                f"{location}: the region of `{word}` is {region}, but there are {m} regions: "
                f"0 … {m - 1}"
            )
    return picture, words, regions

"""Regions and captions of one's own: features in an `.npz` file, captions in a `.jsonl` file, one to a line.

    {"caption": "a red circle", "picture": 0, "regions": [null, 3, 3]}

`regions` (N, m, d) holds the features. `picture` is a number of them, the line's own unless given; `regions` says which
region each word is about, null where none is, and may be left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neural.core.names import did_you_mean
from neural.tasks.captioning.data import SPLITS, Captioned, Split, coded
from neural.tasks.data.array_files import arrays_in
from neural.tasks.data.check import check_finite, sizes
from neural.tasks.focusing.data import parts
from neural.tasks.focusing.tokens import json_objects
from neural.tasks.task import TaskError

FEWEST = 10
"""Pictures."""


def read(path: Path, captions: Path, *, vocabulary: tuple[str, ...] | None, seed: int) -> Captioned:
    """Pictures are split at random, each with all its captions; words are those of the training captions."""
    regions = regions_of(path)
    said = [_caption(one, f"{captions.name}, {place}", number, regions.shape)
            for number, (place, one) in enumerate(json_objects(captions))]  # fmt: skip
    without = sorted(set(range(len(regions))) - {picture for picture, _, _ in said})
    if without:
        raise TaskError(f"{captions.name}: picture {without[0]} of {path.name} has no caption (one of {len(without)})")
    chosen = dict(zip(SPLITS, parts(len(regions), seed), strict=True))
    in_split = {name: [one for one in said if one[0] in set(own.tolist())] for name, own in chosen.items()}
    known = vocabulary or coded([words for _, words, _ in in_split["train"]])
    splits = {
        name: Split.of(regions, np.array([one[0] for one in own], dtype=np.int64), [one[1] for one in own],
                       [one[2] for one in own], known)
        for name, own in in_split.items()
    }  # fmt: skip
    return Captioned(where=path.name, splits=splits, vocabulary=known)


def regions_of(path: Path, least: int = FEWEST) -> np.ndarray:
    """Features (N, m, d) of so many pictures at least; TaskError where they cannot be used."""
    found = arrays_in(path)
    if "regions" not in found:
        there = did_you_mean("regions", found) or f"there are {', '.join(found) or 'none'}"
        raise TaskError(f"{path.name} has no array `regions`; {there}")
    x = found["regions"]
    if x.ndim != 3 or x.dtype.kind not in "biuf":
        raise TaskError(f"{path.name}: `regions` is {sizes(x)} of {x.dtype}, but must be numbers of shape (N, m, d)")
    if x.shape[1] < 2:
        raise TaskError(f"{path.name}: a picture has one region, which leaves nothing to choose; 2 or more are needed")
    if len(x) < least:
        raise TaskError(f"{path.name}: {len(x)} pictures are too few; at least {least} are needed")
    check_finite(x, f"{path.name}: `regions`")
    return x.astype(np.float32)


def _caption(
    one: Any, place: str, number: int, shape: tuple[int, ...]
) -> tuple[int, list[str], list[int | None]]:
    """The picture, the words, and the region of each."""
    if not isinstance(one, dict) or "caption" not in one:
        raise TaskError(f'{place}: the caption is missing; write {{"caption": "a red circle"}}')
    words = one["caption"].split() if isinstance(one["caption"], str) else one["caption"]
    if not (isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)):
        raise TaskError(f"{place}: `caption` must be a text or a list of words, one or more")
    picture, (count, m, _) = one.get("picture", number), shape
    if not isinstance(picture, int) or isinstance(picture, bool) or not 0 <= picture < count:
        raise TaskError(f"{place}: it is about picture {picture}, but there are {count}: 0 … {count - 1}")
    about = one.get("regions", [None] * len(words))
    if not isinstance(about, list) or len(about) != len(words):
        raise TaskError(f"{place}: `regions` must name a region or null for each of the {len(words)} words")
    for word, region in zip(words, about, strict=True):
        if region is not None and not (isinstance(region, int) and 0 <= region < m):
            raise TaskError(f"{place}: `{word}` is about region {region}, but there are {m}: 0 … {m - 1}")
    return picture, words, about

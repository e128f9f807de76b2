"""Mosaics: one image of a foreground class among background images, at a random position.

An example is a mosaic of m segments, each an image. Exactly one image is of a foreground class;
this class is the label. Mosaics are stored as members: indices into one array of all images, the
bank. Images are split before mosaics are drawn, so validation and test images never occur in
training.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.data import loading
from neural.data.sampler import create_generator
from neural.language.network import Network
from neural.tasks.focus.data import SPLIT_NAMES, SPLIT_SHARES, SegmentData, SegmentSplit

DEFAULT_SEGMENTS = 10
"""Segments of a mosaic by default."""
DEFAULT_FOREGROUND_CLASSES = 3
"""By default this many of the first classes are foreground classes."""
IMAGE_SPLIT_RNG_STREAM, MOSAIC_RNG_STREAM = 2, 3
"""Random streams (data/sampler.py): different uses of one seed get independent random numbers."""


def read_mosaics(
    location: str | Path,
    network: Network | None,
    *,
    segments: int,
    foreground: Sequence[str] | None,
    counts: Sequence[int],
    seed: int,
    training_seed: int | None = None,
) -> SegmentData:
    """Draw mosaics from labelled images: any `data` of the task `supervised` that has images.

    `segments` is m; `foreground` names the foreground classes; `counts` are the numbers of
    training, validation and test mosaics. `network` gives the shape of the images. `seed` splits
    the images and draws the mosaics. `training_seed` draws the training mosaics, if given.
    """
    if segments < 2:
        raise TaskError(
            "a mosaic of one segment leaves nothing to choose: `segments` must be at least 2"
        )
    assert network is not None
    examples = loading.load_data(location, network)
    if "x" not in examples.train or "y" not in examples.train:
        raise TaskError(
            f"{examples.data_name}: mosaics need images `x` with classes `y`; it has no such arrays"
        )
    x, y = np.asarray(examples.train["x"]), np.asarray(examples.train["y"])
    test_arrays = (
        None
        if examples.valid is None
        else (np.asarray(examples.valid["x"]), np.asarray(examples.valid["y"]))
    )
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise TaskError(f"{examples.data_name}: `y` must be one class number per image")
    class_names = examples.classes or tuple(map(str, range(int(y.max()) + 1)))
    foreground_classes = _select_foreground(foreground, class_names, examples.data_name)
    split_images = _split_images(y, None if test_arrays is None else test_arrays[1], seed)
    bank = x if test_arrays is None else np.concatenate([x, test_arrays[0]])
    labels = y if test_arrays is None else np.concatenate([y, test_arrays[1]])
    splits = {}
    for split_index, (name, count) in enumerate(zip(SPLIT_NAMES, counts, strict=True)):
        mosaic_seed = training_seed if name == "train" and training_seed is not None else seed
        members, mosaic_labels, positions = _draw_mosaics(
            labels,
            split_images[name],
            foreground_classes,
            segments,
            count,
            create_generator(mosaic_seed, split_index, stream=MOSAIC_RNG_STREAM),
            class_names=class_names,
            location=(examples.data_name, name),
        )
        splits[name] = SegmentSplit(
            unit_bank=bank,
            members=members,
            labels=mosaic_labels,
            foreground=np.arange(segments) == positions[:, None],
            scale=examples.scale,
            is_mosaic=True,
        )
    return SegmentData(
        data_name=examples.data_name,
        splits=splits,
        classes=tuple(class_names[index] for index in foreground_classes),
    )


def _select_foreground(
    foreground: Sequence[str] | None, names: Sequence[str], data_name: str
) -> list[int]:
    """Indices of the foreground classes."""
    selected = (
        list(names[:DEFAULT_FOREGROUND_CLASSES])
        if foreground is None
        else [str(name) for name in foreground]
    )
    for name in selected:
        if name not in names:
            shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
            raise TaskError(
                f"{data_name}: `foreground` names the class `{name}`, but there are only {shown}"
            )
    if len(set(selected)) < len(selected):
        raise TaskError(f"{data_name}: `foreground` names a class twice")
    if len(selected) < 2:
        raise TaskError(f"{data_name}: `foreground` needs at least two classes to distinguish")
    if len(selected) >= len(names):
        raise TaskError(f"{data_name}: all classes are foreground; at least one must be background")
    return [list(names).index(name) for name in selected]


def _split_images(
    y: np.ndarray, test_labels: np.ndarray | None, seed: int
) -> dict[str, np.ndarray]:
    """Image indices by split, with the same shares of every class in each split.

    If the data has validation images of its own (`test_labels`), they are the test set.
    """
    index_lists: dict[str, list[np.ndarray]] = {name: [] for name in SPLIT_NAMES}
    shares = (
        SPLIT_SHARES
        if test_labels is None
        else (SPLIT_SHARES[0] / sum(SPLIT_SHARES[:2]), SPLIT_SHARES[1] / sum(SPLIT_SHARES[:2]), 0.0)
    )
    for label in np.unique(y):
        images = create_generator(seed, int(label), stream=IMAGE_SPLIT_RNG_STREAM).permutation(
            np.flatnonzero(y == label)
        )
        ends = np.cumsum([round(len(images) * share) for share in shares[:2]])
        for name, indices in zip(SPLIT_NAMES, np.split(images, ends), strict=True):
            index_lists[name].append(indices)
    splits = {name: np.concatenate(lists) for name, lists in index_lists.items()}
    return (
        splits
        if test_labels is None
        else {**splits, "test": np.arange(len(y), len(y) + len(test_labels))}
    )


def _draw_mosaics(
    labels: np.ndarray,
    images: np.ndarray,
    foreground: Sequence[int],
    m: int,
    count: int,
    random: np.random.Generator,
    *,
    class_names: Sequence[str],
    location: tuple[str, str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Members, labels and foreground positions of `count` mosaics of m segments.

    `labels` are the classes of all images; `images` are the indices of those that may be used.
    `class_names` and `location` (data name, split name) are for error messages.
    """
    data_name, split = location
    foreground_images = [images[labels[images] == label] for label in foreground]
    background_images = images[~np.isin(labels[images], foreground)]
    for label, class_images in zip(foreground, foreground_images, strict=True):
        if not len(class_images):
            raise TaskError(
                f"{data_name}: class `{class_names[label]}` has no image to {split} with"
            )
    if not len(background_images):
        raise TaskError(f"{data_name}: no image of a background class to {split} with")
    members = random.choice(background_images, size=(count, m))
    mosaic_labels = random.permutation(np.arange(count) % len(foreground)).astype(np.int64)
    positions = random.integers(m, size=count)
    draws = random.random(count)
    for label, class_images in enumerate(foreground_images):
        examples = np.flatnonzero(mosaic_labels == label)
        members[examples, positions[examples]] = class_images[
            (draws[examples] * len(class_images)).astype(int)
        ]
    return members, mosaic_labels, positions

"""Segments in an `.npz` file: `segments` (N, m, …), `labels` (N,), optional `foreground`.

N examples of m segments each. `foreground` gives the index of the segment that decides the label,
(N,), or marks several such segments by a mask (N, m).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.input_checks import check_finite, format_array_shape
from neural.data.numpy_files import load_npz
from neural.tasks.focus.data import (
    SPLIT_NAMES,
    SegmentData,
    SegmentSplit,
    check_labels,
    split_three_ways,
)

ARRAY_NAMES = ("segments", "labels", "foreground")
"""The first two are required."""


def holds_segments(path: Path) -> bool:
    """Whether a file holds segments. A file with `x` and `y` holds images to draw mosaics from."""
    return not {"x", "y"} <= set(load_npz(path))


def read_array_file(path: Path, *, seed: int) -> SegmentData:
    """Read and check all arrays; `seed` decides the random split of the examples."""
    arrays, name = load_npz(path), path.name
    for array_name in ARRAY_NAMES[:2]:
        if array_name not in arrays:
            hint = suggest_name(array_name, arrays) or f"there are {', '.join(arrays) or 'none'}"
            raise TaskError(f"{name} has no array `{array_name}`; {hint}")
    x, y = arrays["segments"], arrays["labels"]
    if x.ndim < 3 or x.dtype.kind not in "biuf":
        raise TaskError(
            f"{name}: `segments` is {format_array_shape(x)} of {x.dtype}, but must be numbers of "
            "shape (N, m, …)"
        )
    count, m = x.shape[:2]
    if m < 2:
        raise TaskError(
            f"{name}: an example has one segment, which leaves nothing to choose; at least 2 are "
            "needed"
        )
    if y.shape != (count,) or y.dtype.kind not in "biu":
        raise TaskError(
            f"{name}: `labels` is {format_array_shape(y)} of {y.dtype}, but must be {count} class "
            "numbers"
        )
    if count < 3:
        raise TaskError(f"{name}: {count} examples are too few to train, validate and test with")
    check_finite(x, f"{name}: `segments`")
    if y.min() < 0:
        raise TaskError(f"{name}: `labels` has {y.min()}; class numbers start at 0")
    # `SegmentSplit` stores segments as indices (members) into a bank of distinct segments. Here
    # every segment is one entry of the bank.
    y, bank = y.astype(np.int64), x.reshape(count * m, *x.shape[2:]).astype(np.float32)
    foreground, members = (
        _parse_foreground(arrays.get("foreground"), count, m, name),
        np.arange(count * m).reshape(count, m),
    )
    classes = int(y.max()) + 1
    split_indices = split_three_ways(count, seed)
    check_labels(y[split_indices[0]], classes, name)
    splits = {
        split_name: SegmentSplit(
            unit_bank=bank,
            members=members[indices],
            labels=y[indices],
            foreground=None if foreground is None else foreground[indices],
        )
        for split_name, indices in zip(SPLIT_NAMES, split_indices, strict=True)
    }
    return SegmentData(data_name=name, splits=splits, classes=tuple(map(str, range(classes))))


def _parse_foreground(
    foreground: np.ndarray | None, count: int, m: int, data_name: str
) -> np.ndarray | None:
    """Convert foreground positions (N,) or masks (N, m) to masks."""
    if foreground is None:
        return None
    if (
        foreground.shape == (count, m)
        and foreground.dtype.kind in "biu"
        and np.isin(foreground, (0, 1)).all()
    ):
        return foreground.astype(bool)
    if foreground.shape != (count,) or foreground.dtype.kind not in "iu":
        raise TaskError(
            f"{data_name}: `foreground` is {format_array_shape(foreground)} of "
            f"{foreground.dtype}, but must be a position 0 … {m - 1} per example"
        )
    invalid = np.flatnonzero((foreground < 0) | (foreground >= m))
    if len(invalid):
        raise TaskError(
            f"{data_name}: `foreground` is {foreground[invalid[0]]} for example {invalid[0]}, but "
            f"there are {m} segments: 0 … {m - 1}"
        )
    return np.arange(m) == foreground[:, None]

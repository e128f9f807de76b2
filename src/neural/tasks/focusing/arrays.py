"""Segments of one's own in an `.npz` file: `segments` (N, m, …), `labels` (N,), perhaps `foreground` (N,)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neural.core.names import did_you_mean
from neural.tasks.data.array_files import arrays_in
from neural.tasks.data.check import check_finite, sizes
from neural.tasks.focusing.data import SPLITS, Data, Split, check_labels, parts
from neural.tasks.task import TaskError

NAMES = ("segments", "labels", "foreground")


def fits(path: Path) -> bool:
    """Whether it holds segments; images with classes are for mosaics."""
    return not {"x", "y"} <= set(arrays_in(path))


def read(path: Path, *, seed: int) -> Data:
    """All arrays, checked; examples are split at random."""
    found, where = arrays_in(path), path.name
    for name in NAMES[:2]:
        if name not in found:
            there = did_you_mean(name, found) or f"there are {', '.join(found) or 'none'}"
            raise TaskError(f"{where} has no array `{name}`; {there}")
    x, y = found["segments"], found["labels"]
    if x.ndim < 3 or x.dtype.kind not in "biuf":
        raise TaskError(f"{where}: `segments` is {sizes(x)} of {x.dtype}, but must be numbers of shape (N, m, …)")
    count, m = x.shape[:2]
    if m < 2:
        raise TaskError(f"{where}: an example has one segment, which leaves nothing to choose; 2 or more are needed")
    if y.shape != (count,) or y.dtype.kind not in "biu":
        raise TaskError(f"{where}: `labels` is {sizes(y)} of {y.dtype}, but must be {count} class numbers")
    if count < 3:
        raise TaskError(f"{where}: {count} examples are too few to train, validate and test with")
    check_finite(x, f"{where}: `segments`")
    if y.min() < 0:
        raise TaskError(f"{where}: `labels` has {y.min()}; class numbers begin at 0")
    y, bank = y.astype(np.int64), x.reshape(count * m, *x.shape[2:]).astype(np.float32)
    front, members = _foreground(found.get("foreground"), count, m, where), np.arange(count * m).reshape(count, m)
    classes = int(y.max()) + 1
    chosen = parts(count, seed)
    check_labels(y[chosen[0]], classes, where)
    splits = {
        name: Split(bank=bank, members=members[own], labels=y[own], foreground=None if front is None else front[own])
        for name, own in zip(SPLITS, chosen, strict=True)
    }
    return Data(where=where, splits=splits, classes=tuple(map(str, range(classes))))


def _foreground(found: np.ndarray | None, count: int, m: int, where: str) -> np.ndarray | None:
    """Places (N,) or marks (N, m) as marks."""
    if found is None:
        return None
    if found.shape == (count, m) and found.dtype.kind in "biu" and np.isin(found, (0, 1)).all():
        return found.astype(bool)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise TaskError(
            f"{where}: `foreground` is {sizes(found)} of {found.dtype}, but must be a place 0 … {m - 1} per example"
        )
    wrong = np.flatnonzero((found < 0) | (found >= m))
    if len(wrong):
        raise TaskError(
            f"{where}: `foreground` is {found[wrong[0]]} for example {wrong[0]}, but there are {m} segments: "
            f"0 … {m - 1}"
        )
    return np.arange(m) == found[:, None]

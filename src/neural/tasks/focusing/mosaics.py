"""Mosaics: one image of a foreground class among images of other classes, at a random place.

The images are split before the mosaics are made: none of those that a model is judged by was seen in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neural.language.network import Network
from neural.tasks.data import find
from neural.tasks.data.split import generator
from neural.tasks.focusing.data import SHARES, SPLITS, Data, Split
from neural.tasks.task import TaskError

USUAL = 10
"""Segments of a mosaic, where no number was given."""
FIRST = 3
"""Classes that are foreground, where none were named."""


def read(
    where: str | Path, network: Network | None, *, m: int, chosen: Sequence[str] | None, counts: Sequence[int],
    seed: int, training_seed: int | None = None,
) -> Data:  # fmt: skip
    """Mosaics of labelled images: `digits`, a folder of pictures, any `data` of `supervised`.

    `seed` splits the images and draws the mosaics; those to train on are drawn by `training_seed`
    where it is given.
    """
    if m < 2:
        raise TaskError("a mosaic of one segment leaves nothing to choose: `segments` must be 2 or more")
    assert network is not None
    found = find.read(where, network)
    if "x" not in found.train or "y" not in found.train:
        raise TaskError(f"{found.where}: mosaics are made of images `x` with classes `y`; it has no such labels")
    x, y = np.asarray(found.train["x"]), np.asarray(found.train["y"])
    own = None if found.valid is None else (np.asarray(found.valid["x"]), np.asarray(found.valid["y"]))
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise TaskError(f"{found.where}: `y` must be one class number per image")
    names = found.classes or tuple(map(str, range(int(y.max()) + 1)))
    wanted = _classes(chosen, names, found.where)
    images = _split(y, None if own is None else own[1], seed)
    bank = x if own is None else np.concatenate([x, own[0]])
    labels = y if own is None else np.concatenate([y, own[1]])
    splits = {}
    for number, (name, count) in enumerate(zip(SPLITS, counts, strict=True)):
        drawn_by = training_seed if name == "train" and training_seed is not None else seed
        who = drawn_by, number, found.where, name
        members, answers, place = _made(labels, images[name], wanted, names, m, count, who)
        splits[name] = Split(
            bank=bank, members=members, labels=answers, foreground=np.arange(m) == place[:, None], scale=found.scale,
            made=True,
        )
    return Data(where=found.where, splits=splits, classes=tuple(names[one] for one in wanted))


def _classes(chosen: Sequence[str] | None, names: Sequence[str], where: str) -> list[int]:
    """Numbers of the foreground classes."""
    said = list(names[:FIRST]) if chosen is None else [str(one) for one in chosen]
    for one in said:
        if one not in names:
            shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
            raise TaskError(f"{where}: `foreground` names the class `{one}`, but there are only {shown}")
    if len(set(said)) < len(said):
        raise TaskError(f"{where}: `foreground` names a class twice")
    if len(said) < 2:
        raise TaskError(f"{where}: `foreground` needs two classes or more; with one there is nothing to tell apart")
    if len(said) >= len(names):
        raise TaskError(f"{where}: all classes are foreground; at least one must be left for the background")
    return [list(names).index(one) for one in said]


def _split(y: np.ndarray, held: np.ndarray | None, seed: int) -> dict[str, np.ndarray]:
    """Images by split, class by class; what the data holds out itself is for the test."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in SPLITS}
    shares = SHARES if held is None else (SHARES[0] / sum(SHARES[:2]), SHARES[1] / sum(SHARES[:2]), 0.0)
    for label in np.unique(y):
        own = generator(seed, int(label), purpose=2).permutation(np.flatnonzero(y == label))
        ends = np.cumsum([round(len(own) * share) for share in shares[:2]])
        for name, part in zip(SPLITS, np.split(own, ends), strict=True):
            found[name].append(part)
    splits = {name: np.concatenate(parts) for name, parts in found.items()}
    return splits if held is None else {**splits, "test": np.arange(len(y), len(y) + len(held))}


def _made(
    labels: np.ndarray, images: np.ndarray, wanted: Sequence[int], names: Sequence[str], m: int, count: int,
    who: tuple[int, int, str, str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Members, classes and the place of the foreground of so many mosaics, made of these images only."""
    seed, number, where, split = who
    fronts = [images[labels[images] == one] for one in wanted]
    behind = images[~np.isin(labels[images], wanted)]
    for label, front in zip(wanted, fronts, strict=True):
        if not len(front):
            raise TaskError(f"{where}: class `{names[label]}` has no image to {split} with")
    if not len(behind):
        raise TaskError(f"{where}: no image of a background class to {split} with")
    random = generator(seed, number, purpose=3)
    members = random.choice(behind, size=(count, m))
    answers = random.permutation(np.arange(count) % len(wanted)).astype(np.int64)
    place = random.integers(m, size=count)
    drawn = random.random(count)
    for label, front in enumerate(fronts):
        mine = np.flatnonzero(answers == label)
        members[mine, place[mine]] = front[(drawn[mine] * len(front)).astype(int)]
    return members, answers, place

"""Which examples train, validate and test: shares or folds, stratified by class, kept by group.

Stratified: every part has about the same share of each class. Grouped: all examples of a group, such
as the rows of one patient, are in the same part. A fold is one of k parts of equal size; each is
the validation part once. Everything depends on the seed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neural.core.errors import TaskError
from neural.data.sampler import create_generator, split_indices

TEST_RNG_STREAM = 3
GROUP_RNG_STREAM = 4
FOLD_RNG_STREAM = 5
"""Numbers of the random streams of this file; see `create_generator`. sampler.py has 0 and 1."""


class Split(NamedTuple):
    """Sorted indices of the examples of each part."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


class Fold(NamedTuple):
    """One of several folds, as the setting `fold: 2/5` names it."""

    number: int
    """From 1 to `count`."""
    count: int

    @staticmethod
    def parse(text: str) -> Fold | None:
        """The fold that `2/5` names; None if the text names none."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal()):
            return None
        fold = Fold(int(number), int(count))
        return fold if 1 <= fold.number <= fold.count and fold.count >= 2 else None


def split_examples(
    count: int,
    *,
    validation_split: float,
    test_split: float = 0.0,
    fold: Fold | None = None,
    seed: int = 0,
    ordered: bool = False,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    data_name: str = "the data",
) -> Split:
    """Split `count` examples; the test examples are chosen first, and are the same for all folds.

    `validation_split` and `test_split` are shares. `labels` are the classes to stratify by. `groups`
    has the group of each example. `ordered` takes the parts from the order of the examples instead
    of at random. Raises TaskError if there are too few examples or groups.
    """
    everything = np.arange(count)
    rest, test = (
        _split_share(everything, test_split, seed, ordered, labels, groups, TEST_RNG_STREAM)
        if test_split
        else (everything, everything[:0])
    )
    if fold is None:
        train, valid = _split_share(rest, validation_split, seed, ordered, labels, groups, None)
        return Split(train, valid, test)
    fold_numbers = _assign_folds(rest, fold.count, seed, ordered, labels, groups, data_name)
    is_held_out = fold_numbers == fold.number - 1
    return Split(rest[~is_held_out], rest[is_held_out], test)


def _split_share(
    examples: np.ndarray,
    share: float,
    seed: int,
    ordered: bool,
    labels: np.ndarray | None,
    groups: np.ndarray | None,
    stream: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Split sorted indices into (kept, held out). `stream` is None for the validation split."""
    if share and groups is not None:
        bins = _assign_groups(
            groups[examples],
            None if labels is None else labels[examples],
            np.array([1 - share, share]),
            create_generator(seed, stream or 0, stream=GROUP_RNG_STREAM),
        )
        return examples[bins == 0], examples[bins == 1]
    if share and labels is not None:
        generator = create_generator(seed, stream or 0, stream=FOLD_RNG_STREAM)
        is_held_out = _stratify_share(labels[examples], share, generator)
        return examples[~is_held_out], examples[is_held_out]
    # the test examples are drawn with a seed of their own, so that they are no function of the
    # validation examples
    part_seed = (
        seed if stream is None else int(create_generator(seed, 0, stream=stream).integers(2**31))
    )
    kept, held_out = split_indices(len(examples), share, seed=part_seed, ordered=ordered)
    return examples[kept], examples[held_out]


def _stratify_share(labels: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """Whether each example is held out: of every class the same share, rounded.

    The remainders are distributed so that the total is right too; one example of each class is kept.
    """
    classes, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    exact = counts * share
    held_out_counts = np.floor(exact).astype(int)
    total = min(max(1, round(len(labels) * share)), len(labels) - 1)
    # largest remainders first; of equal ones the larger class
    order = np.lexsort((-counts, held_out_counts - exact))
    for index in order[: max(0, total - int(held_out_counts.sum()))]:
        held_out_counts[index] += 1
    held_out_counts = np.minimum(held_out_counts, counts - 1)
    is_held_out = np.zeros(len(labels), dtype=bool)
    permuted = generator.permutation(len(labels))
    for index in range(len(classes)):
        members = permuted[numbers[permuted] == index]
        is_held_out[members[: held_out_counts[index]]] = True
    return is_held_out


def _assign_folds(
    examples: np.ndarray,
    count: int,
    seed: int,
    ordered: bool,
    labels: np.ndarray | None,
    groups: np.ndarray | None,
    data_name: str,
) -> np.ndarray:
    """Fold number of each example, from 0."""
    available = len(examples) if groups is None else len(np.unique(groups[examples]))
    if available < count:
        unit = "examples" if groups is None else "groups"
        raise TaskError(f"{data_name}: {available} {unit} are too few for {count} folds")
    if groups is not None:
        generator = create_generator(seed, count, stream=GROUP_RNG_STREAM)
        fold_labels = None if labels is None else labels[examples]
        return _assign_groups(groups[examples], fold_labels, np.full(count, 1 / count), generator)
    if ordered:
        return np.arange(len(examples)) * count // len(examples)
    order = create_generator(seed, count, stream=FOLD_RNG_STREAM).permutation(len(examples))
    if labels is not None:
        # dealt out class by class, like cards: the folds differ by at most one of each class
        order = order[np.argsort(labels[examples][order], kind="stable")]
    fold_numbers = np.empty(len(examples), dtype=np.int64)
    fold_numbers[order] = np.arange(len(examples)) % count
    return fold_numbers


def _assign_groups(
    groups: np.ndarray,
    labels: np.ndarray | None,
    shares: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Part of each example, with all examples of a group in the same part.

    Large groups first, each to the part that then comes closest to its share of every class. Groups
    of equal size are in random order. No part stays empty if there are enough groups.
    """
    group_names, group_numbers = np.unique(groups, return_inverse=True)
    classes, class_numbers = np.unique(
        np.zeros(len(groups)) if labels is None else labels, return_inverse=True
    )
    class_counts = np.zeros((len(group_names), len(classes)))
    np.add.at(class_counts, (group_numbers, class_numbers), 1)
    wanted = shares[:, None] * class_counts.sum(axis=0)
    filled = np.zeros_like(wanted)
    part_of_group = np.zeros(len(group_names), dtype=np.int64)
    permuted = generator.permutation(len(group_names))
    order = permuted[np.argsort(-class_counts[permuted].sum(axis=1), kind="stable")]
    for group in order:
        # change of the squared distance from the wanted counts, relative to them
        added = class_counts[group]
        cost = ((2 * (filled - wanted) + added) * added / wanted).sum(axis=1)
        part_of_group[group] = part = int(cost.argmin())
        filled[part] += added
    for part in np.flatnonzero(filled.sum(axis=1) == 0):
        # a small part next to large groups: it gets the smallest group of the largest part
        largest = np.flatnonzero(part_of_group == filled.sum(axis=1).argmax())
        if len(largest) > 1:
            part_of_group[largest[class_counts[largest].sum(axis=1).argmin()]] = part
    return part_of_group[group_numbers]

"""Examples of many segments, in the form in which all sources give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tasks.data.split import generator
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

SHARES = (0.6, 0.15, 0.25)
"""Of the images or examples: to train, to validate, to test at the end."""
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class Split:
    """Examples as lists of segments: which units of a bank each one is made of."""

    bank: np.ndarray
    """The units: images, vectors, or ids of tokens."""
    members: np.ndarray
    """Numbers of units, (examples, m)."""
    labels: np.ndarray
    """Class numbers, (examples,)."""
    foreground: np.ndarray | None
    """Which segments decide the label, (examples, m), true or false; None where nobody knows."""
    mask: np.ndarray | None = None
    """Which segments are real, (examples, m); None where all are."""
    scale: float = 1.0
    """What the bank is multiplied with as it is used."""

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, examples: np.ndarray | slice) -> dict[str, Tensor]:
        """Examples by number: `x` (B, m, …), `y`, and `z` (foreground) and `mask` where they are known."""
        x = torch.from_numpy(self.bank[self.members[examples]])
        x = x if x.dtype == torch.int64 else x.to(torch.float32)
        found = {"x": x * self.scale if self.scale != 1.0 else x, "y": torch.from_numpy(self.labels[examples])}
        for name, array in (("z", self.foreground), ("mask", self.mask)):
            if array is not None:
                found[name] = torch.from_numpy(array[examples])
        return found


@dataclass(frozen=True, kw_only=True)
class Data:
    """What was read."""

    where: str
    splits: dict[str, Split]
    classes: tuple[str, ...]
    vocabulary: tuple[str, ...] = ()
    """What the ids stand for, where segments are tokens."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one segment."""
        return self.splits["train"].bank.shape[1:]

    @property
    def segments(self) -> int:
        """m, padding included."""
        return int(self.splits["train"].members.shape[1])


def parts(count: int, seed: int, purpose: int = 1) -> list[np.ndarray]:
    """Numbers of the train, valid and test examples: at random, each in one part only."""
    order = generator(seed, 0, purpose=purpose).permutation(count)
    train = count - 2 * max(1, round(count * 0.1)) if count < 20 else round(count * SHARES[0])
    valid = train + max(1, round((count - train) * SHARES[1] / (SHARES[1] + SHARES[2])))
    return [np.sort(order[:train]), np.sort(order[train:valid]), np.sort(order[valid:])]


def check_labels(labels: np.ndarray, classes: int, where: str) -> None:
    """Every class has an example to learn from, and no label is of another class."""
    present = set(np.unique(labels).tolist())
    missing = sorted(set(range(classes)) - present)
    if missing:
        raise TaskError(f"{where}: class {missing[0]} has no example to learn from, of {classes} classes")
    if classes < 2:
        raise TaskError(f"{where}: all examples are of one class; there is nothing to tell apart")

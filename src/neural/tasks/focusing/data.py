"""Examples of many segments, in the form in which all sources give them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tasks.data.split import generator
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from jaxtyping import Int
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
    """Which segments decide the label, (examples, m), true or false; an example without any is one of which nobody
    knows it, None says so of all."""
    mask: np.ndarray | None = None
    """Which segments are real, (examples, m); None where all are."""
    scale: float = 1.0
    """What the bank is multiplied with as it is used."""
    made: bool = False
    """Whether they were put together here, so that smaller ones can be: mosaics."""

    def __len__(self) -> int:
        return len(self.labels)

    def smaller(self, segments: int) -> Split:
        """The same examples with fewer segments: the foreground and some neighbours, all at other places."""
        assert self.made and self.foreground is not None
        place, numbers = self.foreground.argmax(axis=1), np.arange(len(self))
        columns = (place - numbers % segments)[:, None] + np.arange(segments)
        columns %= self.members.shape[1]
        members, front = (np.take_along_axis(one, columns, axis=1) for one in (self.members, self.foreground))
        return replace(self, members=members, foreground=front)

    def take(self, examples: np.ndarray | slice) -> dict[str, Tensor]:
        """Examples by number: `members` (B, m), `y`, and `z` (foreground) and `mask` where they are known."""
        found = {"members": torch.from_numpy(self.members[examples]), "y": torch.from_numpy(self.labels[examples])}
        for name, array in (("z", self.foreground), ("mask", self.mask)):
            if array is not None:
                found[name] = torch.from_numpy(array[examples])
        return found

    def units(self, which: np.ndarray | Tensor) -> Tensor:
        """What is in the bank under these numbers, as networks take it: of any shape, then that of a unit."""
        x = torch.from_numpy(self.bank[np.asarray(which)])
        x = x if x.dtype == torch.int64 else x.to(torch.float32)
        return x * self.scale if self.scale != 1.0 else x

    def each_once(self, members: Int[Tensor, "B m"]) -> tuple[Tensor, Int[Tensor, "B m"]]:
        """The units that some examples are made of, none of them twice, and the members' places among these."""
        there = torch.zeros(len(self.bank), dtype=torch.bool, device=members.device)
        there[members] = True
        place = there.cumsum(dim=0) - 1
        return self.units(there.nonzero().squeeze(1).cpu()).to(members.device), place[members]


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

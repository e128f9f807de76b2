"""Examples of many segments: the common form of mosaics, array files and token files.

A unit is a distinct segment (an image, a vector, a token). All units are stored once, in the bank;
an example is a list of unit indices, its members. The foreground is the segments that decide the
label. A mosaic is a generated example (mosaics.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.data.sampler import create_generator
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

SPLIT_SHARES = (0.6, 0.15, 0.25)
"""Shares of training, validation and test examples."""
SPLIT_NAMES = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class SegmentSplit:
    """Training, validation or test examples, as lists of indices into a shared bank."""

    unit_bank: np.ndarray
    """The units, (U, …): images, vectors, or token ids."""
    members: np.ndarray
    """Unit index of each segment, (examples, m)."""
    labels: np.ndarray
    """Class numbers, (examples,)."""
    foreground: np.ndarray | None
    """Which segments decide the label, boolean, (examples, m). A row of False means unknown; None
    means unknown for all examples."""
    mask: np.ndarray | None = None
    """Which segments are not padding, (examples, m); None if all are real."""
    scale: float = 1.0
    """Factor that loaded units are multiplied by, such as 1/255 for images of bytes."""
    is_mosaic: bool = False
    """Whether the examples are generated mosaics, which can be made smaller."""

    def __len__(self) -> int:
        return len(self.labels)

    def shrink(self, segments: int) -> SegmentSplit:
        """The same mosaics with fewer segments: the foreground and some of its neighbours.

        The position of the foreground varies evenly over the examples.
        """
        assert self.is_mosaic and self.foreground is not None
        position, example_indices = self.foreground.argmax(axis=1), np.arange(len(self))
        columns = (position - example_indices % segments)[:, None] + np.arange(segments)
        columns %= self.members.shape[1]
        members, foreground = (
            np.take_along_axis(array, columns, axis=1) for array in (self.members, self.foreground)
        )
        return replace(self, members=members, foreground=foreground)

    def take(self, examples: np.ndarray | slice) -> dict[str, Tensor]:
        """A batch of examples: `members` (B, m), labels `y`, and `foreground`, `mask` if known."""
        batch = {
            "members": torch.from_numpy(self.members[examples]),
            "y": torch.from_numpy(self.labels[examples]),
        }
        for name, array in (("foreground", self.foreground), ("mask", self.mask)):
            if array is not None:
                batch[name] = torch.from_numpy(array[examples])
        return batch

    def load_units(self, indices: np.ndarray | Tensor) -> Tensor:
        """Units at these indices as int64 or scaled float32, (*indices, *unit)."""
        x = torch.from_numpy(self.unit_bank[np.asarray(indices)])
        x = x if x.dtype == torch.int64 else x.to(torch.float32)
        return x * self.scale if self.scale != 1.0 else x

    def unique_units(self, members: Int[Tensor, "B m"]) -> tuple[Tensor, Int[Tensor, "B m"]]:
        """The distinct units of some examples, (U, …), and the members as indices into these."""
        is_used = torch.zeros(len(self.unit_bank), dtype=torch.bool, device=members.device)
        is_used[members] = True
        unit_index = is_used.cumsum(dim=0) - 1
        return self.load_units(is_used.nonzero().squeeze(1).cpu()).to(members.device), unit_index[
            members
        ]


@dataclass(frozen=True, kw_only=True)
class SegmentData:
    """Training, validation and test examples of one dataset."""

    data_name: str
    splits: dict[str, SegmentSplit]
    classes: tuple[str, ...]
    """Class names by index."""
    vocabulary: tuple[str, ...] = ()
    """Tokens by id, if segments are tokens."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one segment."""
        return self.splits["train"].unit_bank.shape[1:]

    @property
    def segments(self) -> int:
        """Number of segments m of an example, padding included."""
        return int(self.splits["train"].members.shape[1])


def split_three_ways(count: int, seed: int, stream: int = 1) -> list[np.ndarray]:
    """Disjoint random indices of training, validation and test examples, each sorted.

    `stream` separates the random numbers of different uses of one seed (data/sampler.py).
    """
    order = create_generator(seed, 0, stream=stream).permutation(count)
    # Below 20 examples, 60 % is too few for training: hold out about 10 % twice, at least 1.
    train_end = (
        count - 2 * max(1, round(count * 0.1)) if count < 20 else round(count * SPLIT_SHARES[0])
    )
    valid_end = train_end + max(
        1, round((count - train_end) * SPLIT_SHARES[1] / (SPLIT_SHARES[1] + SPLIT_SHARES[2]))
    )
    return [
        np.sort(order[:train_end]),
        np.sort(order[train_end:valid_end]),
        np.sort(order[valid_end:]),
    ]


def check_labels(labels: np.ndarray, classes: int, data_name: str) -> None:
    """Raise TaskError unless there are several classes, each with a training example."""
    present = set(np.unique(labels).tolist())
    missing = sorted(set(range(classes)) - present)
    if missing:
        raise TaskError(f"{data_name}: class {missing[0]} of {classes} has no training example")
    if classes < 2:
        raise TaskError(
            f"{data_name}: all examples are of one class; at least 2 classes are needed"
        )

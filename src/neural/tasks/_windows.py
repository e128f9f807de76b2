"""A long text as windows: drawn from anywhere to train on, fixed ones to judge by.

A window is `context` + 1 ids: all but the last go in, all but the first are to be predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tasks.data.split import generator
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

PUBLISHED = {100_000_000: (90_000_000, 95_000_000)}
"""Where training and validation end in enwik8 and text8 as everybody splits them; what follows is for a last test."""
DRAWN = 2
"""Keeps these random numbers apart from those of data.order and data.split."""


class Windows:
    """The ids of a text, split by position: the beginning is learned, the end is held out."""

    def __init__(self, ids: np.ndarray, table: np.ndarray, context: int, share: float | None, where: str) -> None:
        """`table` maps the text's ids to the network's. Without a `share`, the published split of such a length."""
        self.ids, self.table, self.context = ids, table, context
        if share is None:
            self.end, self.last = PUBLISHED[len(ids)]
        else:
            self.end, self.last = int(len(ids) * (1 - share)), len(ids)
        held = self.last - self.end
        if min(self.end, held or self.end) <= context:
            raise TaskError(_too_short(where, len(ids), self.end, held, context))

    @property
    def epoch(self) -> int:
        """Windows that would cover what is learned, side by side."""
        return (self.end - 1) // self.context

    def draw(self, index: int, count: int, seed: int) -> dict[str, Tensor]:
        """The training batch of that number: as many windows, from anywhere."""
        starts = generator(seed, index, purpose=DRAWN).integers(0, self.end - self.context, size=count)
        return self.take(starts)

    def fixed(self, most: int) -> np.ndarray:
        """Where the windows begin that judge: side by side from end to end, or `most` of them evenly spread (0: all).

        What is left at the end and fills no window is not looked at.
        """
        held = self.last - self.end
        count = (held - 1) // self.context if held else 0
        if most and count > most:
            return self.end + np.linspace(0, held - self.context - 1, most).astype(np.int64)
        return self.end + np.arange(count) * self.context

    def take(self, starts: np.ndarray) -> dict[str, Tensor]:
        """What goes in and what comes out, for windows that begin there."""
        taken = torch.from_numpy(self.table[self.ids[starts[:, None] + np.arange(self.context + 1)]])
        return {"x": taken[:, :-1].contiguous(), "y": taken[:, 1:].contiguous()}


def _too_short(where: str, count: int, end: int, held: int, context: int) -> str:
    needed = f"a context of {context:,} needs at least {context + 1:,}"
    if count <= context:
        return f"{where} has {count:,} characters; {needed}"
    part, much = ("to train on", end) if end <= context else ("held out", held)
    other = "smaller" if end <= context else "larger"
    return f"{where} has {count:,} characters, {much:,} of them {part}; {needed}, or a {other} `validation_split`"

"""Captions of pictures, word by word: each time the likeliest word, and where it was looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.modules.late import torch
from neural.tasks.captioning.data import END, Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from neural.tasks.focusing.paradigm import Paradigm
    from neural.tasks.focusing.segments import Segments

TOGETHER = 256
"""Pictures that are spoken of at once."""


@dataclass(frozen=True)
class Spoken:
    """One caption."""

    words: tuple[int, ...]
    """Ids, without END."""
    focus: np.ndarray
    """On every region at every word, (words, m)."""


def speak(
    model: Any, regions: np.ndarray, paradigm: Paradigm, segments: Callable[[Any, Tensor, Tensor], Segments],
    longest: int,
) -> list[Spoken]:  # fmt: skip
    """What the model says about pictures (N, m, d), in at most so many words; it mixes regions as the paradigm does."""
    device = next(model.parameters()).device
    spoken: list[Spoken] = []
    for start in range(0, len(regions), TOGETHER):
        sight = model.sight(torch.from_numpy(regions[start : start + TOGETHER]).to(device))
        state, last = model.begun(sight), torch.full((len(sight), 1), END, device=device)
        words, focus = [], []
        for _ in range(longest):
            memory, state = model.read(last, state)
            given = segments(model, model.segments(sight, memory.squeeze(1)), last.squeeze(1))
            last = paradigm.predict(given).argmax(dim=-1, keepdim=True)
            words.append(last.squeeze(1))
            focus.append(paradigm.focus(given.scores))
        said, looked = torch.stack(words, dim=1).cpu().numpy(), torch.stack(focus, dim=1).cpu().numpy()
        for one, where in zip(said, looked, strict=True):
            ends = np.flatnonzero(one == END)
            length = int(ends[0]) if len(ends) else longest
            spoken.append(Spoken(tuple(one[:length].tolist()), where[:length]))
    return spoken


def right(spoken: list[Spoken], pictures: list[int], split: Split) -> float:
    """Share of the pictures whose caption is, word for word, one that was given."""
    known = split.references()
    return float(np.mean([one.words in known[picture] for one, picture in zip(spoken, pictures, strict=True)]))

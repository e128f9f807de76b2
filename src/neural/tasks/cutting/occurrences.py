"""How far away a word's last and next use are."""

from __future__ import annotations

import numpy as np

from neural.tasks.cutting.words import Words


def distances(words: Words) -> tuple[np.ndarray, np.ndarray]:
    """For every word, in elements, how far back it was used last and how far ahead it is used next.

    Uses within one element are one: 0 stands for all but the first (back) and all but the last (ahead). Where there
    is none, the distance is twice the number of elements, more than any can be.
    """
    never = 2 * len(words)
    order = np.argsort(words.ids, kind="stable")
    ids, owners = words.ids[order], words.owners[order]
    apart = np.where(ids[1:] == ids[:-1], owners[1:] - owners[:-1], never)
    back, ahead = np.full(len(ids), never), np.full(len(ids), never)
    back[order[1:]] = apart
    ahead[order[:-1]] = apart
    return back, ahead

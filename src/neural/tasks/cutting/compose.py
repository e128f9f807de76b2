"""Documents made of pieces of others, so that their boundaries are known for certain (Choi, 2000)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neural.tasks.cutting.document import Document, joined
from neural.tasks.data.split import generator

PARTS = 10
LENGTHS = (3, 11)
"""Elements of a part, from the least to the most."""


def compose(
    sources: Sequence[Sequence[str]], count: int, *, seed: int, parts: int = PARTS, lengths: tuple[int, int] = LENGTHS
) -> list[Document]:
    """`count` documents of `parts` pieces, each a run of elements from a source of its own, never two alike in one.

    Where fewer sources are long enough, a document has as many parts as there are sources; ValueError below two. The
    documents keep the number of the source that each element is of.
    """
    usable = [number for number, source in enumerate(sources) if len(source) >= lengths[0]]
    if len(usable) < 2:
        raise ValueError(f"two texts of {lengths[0]} or more elements are needed to mix; there are {len(usable)}")
    return [
        _made(sources, usable, number, generator(seed, number, purpose=2), parts, lengths) for number in range(count)
    ]


def _made(
    sources: Sequence[Sequence[str]], usable: Sequence[int], number: int, dice: np.random.Generator, parts: int,
    lengths: tuple[int, int],
) -> Document:  # fmt: skip
    chosen = [usable[at] for at in dice.permutation(len(usable))[:parts]]
    pieces = []
    for source in (sources[at] for at in chosen):
        length = min(int(dice.integers(lengths[0], lengths[1] + 1)), len(source))
        start = int(dice.integers(0, len(source) - length + 1))
        pieces.append(source[start : start + length])
    return joined(f"composed {number}", pieces, [str(at) for at in chosen])

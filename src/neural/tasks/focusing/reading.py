"""What the user wrote as `data` → examples of many segments, by the one source that knows this kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neural.language.network import Network
from neural.tasks.focusing import arrays, mosaics, tokens
from neural.tasks.focusing.data import Data
from neural.tasks.task import TaskError


def read(
    where: str | Path, network: Network | None, *, segments: int | None, foreground: Sequence[str] | None,
    examples: Sequence[int], seed: int, training_seed: int | None = None,
) -> Data:  # fmt: skip
    """The examples behind a name, a file or a folder; TaskError says what is wrong with them.

    `network` says the shape that segments should have, where it was given. `foreground` and `examples` (how many to
    train on, to validate and to test with) are for mosaics.

    `seed` decides what is held out. Mosaics to train on are drawn by `training_seed` where given.
    """
    if isinstance(where, Path) and where.suffix.lower() in (".jsonl", ".json"):
        found = tokens.read(where, seed=seed)
    elif isinstance(where, Path) and where.suffix.lower() == ".npz" and arrays.fits(where):
        found = arrays.read(where, seed=seed)
    else:
        return mosaics.read(
            where,
            network,
            m=segments or mosaics.USUAL,
            chosen=foreground,
            counts=examples,
            seed=seed,
            training_seed=training_seed,
        )
    if foreground is not None:
        raise TaskError(f"{found.where}: `foreground` is for mosaics; this file says itself what is foreground")
    if segments is not None and segments != found.segments:
        raise TaskError(f"{found.where}: `segments` is {segments}, but its examples have {found.segments}")
    return found

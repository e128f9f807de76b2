"""How much of a held-out text also occurs, word for word, in the training text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LENGTH = 50
"""Characters (or bytes) of an n-gram."""
MAX_SAMPLES = 10_000
"""Places of the held-out text that are looked at, evenly spread."""
MAX_SHARED = 0.2
"""Share above which a note says so. Measured with the last tenth held out: tiny Shakespeare 0, heads of text8 .002 and
of enwik8 .011, the handbook, whose topics quote each other, .11; a text repeated twelve times 1."""
CHUNK = 1 << 20
"""Training characters that are hashed at once."""
TABLE_BITS = 20
"""Of a table that rules out most training n-grams before the exact search."""

Hashes = npt.NDArray[np.uint64]


def shared_ngrams(ids: npt.NDArray[np.integer], end: int, last: int) -> float | None:
    """Share of the n-grams of `ids[end:last]` that also stand in `ids[:end]`; None where the text is shorter than one.

    Of at most `MAX_SAMPLES` places, which are compared with every place of the training text: O(len(ids)) time, and
    memory for one chunk. N-grams are compared by 64-bit hashes.
    """
    places = last - end - LENGTH + 1
    if places <= 0 or end < LENGTH:
        return None
    random = np.random.default_rng(0)
    values = random.integers(1 << 63, size=_values(ids), dtype=np.uint64)   # one per id
    starts = end + np.unique(np.linspace(0, places - 1, min(places, MAX_SAMPLES)).astype(np.int64))
    wanted = np.concatenate([_hash(values[ids[start : start + LENGTH]]) for start in starts])
    distinct = np.unique(wanted)
    table = np.zeros(1 << TABLE_BITS, dtype=bool)
    table[_table_index(distinct)] = True
    matches = []
    for start in range(0, end - LENGTH + 1, CHUNK):
        hashes = _hash(values[ids[start : min(start + CHUNK + LENGTH - 1, end)]])
        candidates = np.unique(hashes[table[_table_index(hashes)]])
        matches.append(np.intersect1d(candidates, distinct, assume_unique=True))
    return float(np.isin(wanted, np.concatenate(matches)).mean())


def _values(ids: npt.NDArray[np.integer]) -> int:
    return int(np.iinfo(ids.dtype).max) + 1 if ids.dtype.itemsize <= 2 else int(ids.max()) + 1


def _hash(values: Hashes) -> Hashes:
    """Of every n-gram: a polynomial modulo 2^64, by doubling, so a length of 50 takes eight passes and not fifty."""
    powers = [(1, values)]   # hashes of the lengths 1, 2, 4, …
    while 2 * powers[-1][0] <= LENGTH:
        length, hashes = powers[-1]
        powers.append((2 * length, _join(hashes[:-length], hashes[length:], length)))
    done, result = 0, None
    for length, hashes in reversed(powers):
        if done + length <= LENGTH:
            tail = hashes[done : len(values) - LENGTH + 1 + done]
            result = tail if result is None else _join(result, tail, length)
            done += length
    assert result is not None
    return result


def _join(left: Hashes, right: Hashes, length: int) -> Hashes:
    """Of two neighbours, the second so long."""
    return left * np.uint64(pow(0x9E3779B97F4A7C15, length, 1 << 64)) + right


def _table_index(hashes: Hashes) -> npt.NDArray[np.int64]:
    return (hashes >> np.uint64(64 - TABLE_BITS)).astype(np.int64)


def overlap_note(where: str, share: float | None) -> list[str]:
    """A note where more than `MAX_SHARED` is shared."""
    if share is None or share <= MAX_SHARED:
        return []
    return [
        f"{where}: {share:.0%} of the text held out stands in the training text as well ({LENGTH} characters and more "
        "in a row), so the validation shows memory as much as skill"
    ]

"""Overlap of validation and training text: share of n-grams that occur in both."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NGRAM_LENGTH = 50
"""Characters (or bytes) of an n-gram."""
MAX_SAMPLED_NGRAMS = 10_000
"""Largest number of n-grams of the validation text that are checked; they are evenly spaced."""
MAX_OVERLAP_SHARE = 0.2
"""The user is told about a larger share. Measured with the last tenth held out: tiny Shakespeare 0,
the beginning of text8 0.002, of enwik8 0.011; Python's help() topics, which quote each other, 0.11;
a text repeated twelve times 1."""
CHUNK_CHARACTERS = 1 << 20
"""Training characters hashed at once."""
TABLE_BITS = 20
"""The leading hash bits index a table of the validation n-grams. A lookup rules out most training
n-grams cheaply, before the exact comparison of hashes."""

HASH_BASE = 0x9E3779B97F4A7C15
"""Base of the polynomial hash."""

Hashes = npt.NDArray[np.uint64]


def measure_ngram_overlap(
    ids: npt.NDArray[np.integer], train_end: int, valid_end: int
) -> float | None:
    """Share of the n-grams of `ids[train_end:valid_end]` that also occur in `ids[:train_end]`.

    Compares at most MAX_SAMPLED_NGRAMS n-grams with every position of the training text, by 64-bit
    hashes. Time is O(len(ids)), memory that of one chunk. None if one of both texts is shorter than
    an n-gram.
    """
    positions = valid_end - train_end - NGRAM_LENGTH + 1
    if positions <= 0 or train_end < NGRAM_LENGTH:
        return None
    random = np.random.default_rng(0)
    random_values = random.integers(1 << 63, size=_count_ids(ids), dtype=np.uint64)  # one per id
    starts = train_end + np.unique(
        np.linspace(0, positions - 1, min(positions, MAX_SAMPLED_NGRAMS)).astype(np.int64)
    )
    valid_hashes = _hash_rows(random_values[ids[starts[:, None] + np.arange(NGRAM_LENGTH)]])
    distinct_hashes = np.unique(valid_hashes)
    table = np.zeros(1 << TABLE_BITS, dtype=bool)
    table[_table_index(distinct_hashes)] = True
    matches = []
    for start in range(0, train_end - NGRAM_LENGTH + 1, CHUNK_CHARACTERS):
        hashes = _hash_ngrams(
            random_values[ids[start : min(start + CHUNK_CHARACTERS + NGRAM_LENGTH - 1, train_end)]]
        )
        candidates = np.unique(hashes[table[_table_index(hashes)]])
        matches.append(np.intersect1d(candidates, distinct_hashes, assume_unique=True))
    return float(np.isin(valid_hashes, np.concatenate(matches)).mean())


def _count_ids(ids: npt.NDArray[np.integer]) -> int:
    """A number above all ids. For 8- and 16-bit ids the range of the type, without reading them."""
    return int(np.iinfo(ids.dtype).max) + 1 if ids.dtype.itemsize <= 2 else int(ids.max()) + 1


def _hash_ngrams(values: Hashes) -> Hashes:
    """Polynomial hash modulo 2^64 of every n-gram of `values`, which has a value per position.

    Hashes of lengths 1, 2, 4, … are combined, so a length of 50 takes 8 passes instead of 50.
    """
    powers = [(1, values)]  # hashes of the lengths 1, 2, 4, …
    while 2 * powers[-1][0] <= NGRAM_LENGTH:
        length, hashes = powers[-1]
        powers.append((2 * length, _combine_hashes(hashes[:-length], hashes[length:], length)))
    hashed, result = 0, None
    for length, hashes in reversed(powers):
        if hashed + length <= NGRAM_LENGTH:
            tail = hashes[hashed : len(values) - NGRAM_LENGTH + 1 + hashed]
            result = tail if result is None else _combine_hashes(result, tail, length)
            hashed += length
    assert result is not None
    return result


def _hash_rows(ngrams: npt.NDArray[np.uint64]) -> Hashes:
    """The same hash of single n-grams, one per row."""
    exponents = range(ngrams.shape[1] - 1, -1, -1)
    powers = np.array([pow(HASH_BASE, power, 1 << 64) for power in exponents], dtype=np.uint64)
    return (ngrams * powers).sum(axis=1)  # modulo 2^64, the range of the type


def _combine_hashes(left: Hashes, right: Hashes, length: int) -> Hashes:
    """Hashes of the concatenations left + right; `length` is that of the right n-grams."""
    return left * np.uint64(pow(HASH_BASE, length, 1 << 64)) + right


def _table_index(hashes: Hashes) -> npt.NDArray[np.int64]:
    return (hashes >> np.uint64(64 - TABLE_BITS)).astype(np.int64)


def format_overlap_note(data_name: str, share: float | None) -> list[str]:
    """A note if the overlap exceeds `MAX_OVERLAP_SHARE`."""
    if share is None or share <= MAX_OVERLAP_SHARE:
        return []
    return [
        f"{data_name}: {share:.0%} of the validation text also occurs in the training text (at "
        f"least {NGRAM_LENGTH} characters in a row), so the validation measures memorisation too"
    ]

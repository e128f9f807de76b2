"""Examples that are both learned from and held out: equal inputs, found by a hash of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_SHARE = 0.01
"""Of the examples held out, from which on a note says so: one copy among thousands is not worth one."""
MAX_BYTES = 1 << 30
MAX_ROWS = 1 << 20
"""Larger data is not searched."""
CHUNK = 4096
"""Rows that are read at once."""

Arrays = Mapping[str, npt.NDArray]


class Duplicates(NamedTuple):
    """How many of the examples held out have the inputs of a training example."""

    equal: int
    """The same inputs."""
    other_target: int
    """Of these, those whose target no training example with these inputs has."""
    held: int

    def note(self, where: str) -> list[str]:
        """In words, where there are enough of them."""
        if self.equal < max(1, MIN_SHARE * self.held):
            return []
        differ = f" ({self.other_target:,} with another target)" if self.other_target else ""
        count = f"{self.equal:,} of {self.held:,} examples held out"
        return [
            f"{where}: {count} have the inputs of a training example{differ}; they test memory, "
            "not skill, unless so few inputs are possible that equal ones are usual"
        ]


def find_duplicates(train: Arrays, rows: npt.NDArray, valid: Arrays, held: npt.NDArray) -> Duplicates | None:
    """Rows `held` of `valid` against `rows` of `train`; all arrays but `y` are inputs. None where there is too much."""
    size = sum(array.nbytes for part in (train, valid) for array in part.values())
    if size > MAX_BYTES or len(rows) > MAX_ROWS:
        return None
    inputs, pairs = set(), set()
    for of_inputs, of_both in _row_hashes(train, rows):
        inputs.add(of_inputs)
        pairs.add(of_both)
    equal = other_target = 0
    for of_inputs, of_both in _row_hashes(valid, held):
        equal += of_inputs in inputs
        other_target += of_inputs in inputs and of_both not in pairs
    return Duplicates(equal, other_target, len(held))


def _row_hashes(arrays: Arrays, rows: npt.NDArray) -> Iterator[tuple[int, int]]:
    """Of the inputs of each row, and of its inputs and target together."""
    names = sorted(name for name in arrays if name != "y")
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        inputs = np.concatenate([_row_bytes(arrays[name][chunk]) for name in names], axis=1)
        both = np.concatenate([inputs, _row_bytes(arrays["y"][chunk])], axis=1)
        for row, pair in zip(inputs, both, strict=True):
            yield hash(row.tobytes()), hash(pair.tobytes())


def _row_bytes(rows: npt.NDArray) -> npt.NDArray[np.uint8]:
    """The same for the same numbers, whatever their type was."""
    numbers = np.ascontiguousarray(rows, dtype=np.float64).reshape(len(rows), -1) + 0.0   # −0 is 0
    return numbers.view(np.uint8)

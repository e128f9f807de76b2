"""Validation examples whose inputs are also in the training data, found by a hash of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_DUPLICATE_SHARE = 0.01
"""A note is shown if at least this share of the validation examples are duplicates."""
MAX_SEARCHED_BYTES = 1 << 30
"""Data with larger arrays (all together) is not searched."""
MAX_SEARCHED_ROWS = 1 << 20
"""Data with more training examples is not searched."""
CHUNK_ROWS = 4096
"""Rows hashed at once."""

NamedArrays = Mapping[str, npt.NDArray]


class DuplicateCounts(NamedTuple):
    """How many validation examples are duplicates of training examples."""

    equal: int
    """Validation examples with the inputs of a training example."""
    other_target: int
    """Those of them whose target differs from all training examples with these inputs."""
    held_out: int
    """All validation examples."""

    def format_notes(self, data_name: str) -> list[str]:
        """A note if the share of duplicates is at least `MIN_DUPLICATE_SHARE`, else nothing."""
        if self.equal < max(1, MIN_DUPLICATE_SHARE * self.held_out):
            return []
        other_target_note = (
            f" ({self.other_target:,} with another target)" if self.other_target else ""
        )
        count = f"{self.equal:,} of {self.held_out:,} validation examples"
        return [
            f"{data_name}: {count} have the same inputs as a training example{other_target_note}; "
            "they test memorisation, not generalisation, unless few distinct inputs exist"
        ]


def find_duplicates(
    train: NamedArrays,
    train_indices: npt.NDArray,
    valid: NamedArrays,
    held_out_indices: npt.NDArray,
) -> DuplicateCounts | None:
    """Compare rows `held_out_indices` of `valid` with rows `train_indices` of `train`.

    All arrays except `y` are inputs. Returns None if the data is too large to search.
    """
    total_bytes = sum(array.nbytes for arrays in (train, valid) for array in arrays.values())
    if total_bytes > MAX_SEARCHED_BYTES or len(train_indices) > MAX_SEARCHED_ROWS:
        return None
    train_inputs, train_pairs = set(), set()
    for input_hash, pair_hash in _hash_rows(train, train_indices):
        train_inputs.add(input_hash)
        train_pairs.add(pair_hash)
    equal = other_target = 0
    for input_hash, pair_hash in _hash_rows(valid, held_out_indices):
        equal += input_hash in train_inputs
        other_target += input_hash in train_inputs and pair_hash not in train_pairs
    return DuplicateCounts(equal, other_target, len(held_out_indices))


def _hash_rows(arrays: NamedArrays, rows: npt.NDArray) -> Iterator[tuple[int, int]]:
    """Per row: hash of the inputs, hash of inputs and target."""
    input_names = sorted(name for name in arrays if name != "y")
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        inputs = np.concatenate(
            [_to_row_bytes(arrays[name][chunk]) for name in input_names], axis=1
        )
        inputs_and_targets = np.concatenate([inputs, _to_row_bytes(arrays["y"][chunk])], axis=1)
        for input_row, pair_row in zip(inputs, inputs_and_targets, strict=True):
            yield hash(input_row.tobytes()), hash(pair_row.tobytes())


def _to_row_bytes(rows: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Each row as bytes, (rows, bytes). Equal numbers give equal bytes, whatever their dtype."""
    numbers = np.ascontiguousarray(rows, dtype=np.float64).reshape(len(rows), -1) + 0.0  # −0 → 0
    return numbers.view(np.uint8)

"""Sort named arrays into training and validation splits, by the suffixes of their names.

The names are `x` and `y`, for an encoder-decoder network `source` and `target`, and their masks.
`x_valid` is the `x` of the validation split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from neural.core.errors import TaskError
from neural.core.names import suggest_name

if TYPE_CHECKING:
    import numpy as np

    from neural.data.source import Arrays
    from neural.language.network import Network

ARRAY_NAMES = ("x", "y", "mask", "source", "target", "target_mask")
TRAIN_SUFFIXES = ("", "_train")
"""Suffixes of training arrays, in order of preference."""
VALID_SUFFIXES = ("_valid", "_val", "_validation", "_test")
"""Suffixes of validation arrays, in order of preference."""


def select_splits(
    arrays: Mapping[str, np.ndarray], data_name: str, network: Network
) -> tuple[Arrays, Arrays | None, list[str]]:
    """(training arrays, validation arrays or None, notes); arrays are by name, without suffixes.

    Arrays with unknown names are ignored; a note lists them. Raises TaskError if one is missing.
    """
    train, train_names = _select_by_suffix(arrays, TRAIN_SUFFIXES)
    valid, valid_names = _select_by_suffix(arrays, VALID_SUFFIXES)
    unused = [name for name in arrays if name not in train_names | valid_names]
    notes = [f"{data_name}: {_format_names(unused)} not used"] if unused else []
    if any(name.endswith("_test") for name in valid_names):
        notes.append(f"{data_name}: {_format_names(sorted(valid_names))} used for validation")
    if network.is_encoder_decoder:
        train, valid = _rename_to_source_and_target(train), _rename_to_source_and_target(valid)
    required_names = ("source", "target") if network.is_encoder_decoder else ("x", "y")
    for split, suffix in ((train, ""), (valid, "_valid")):
        for name in required_names if split or not suffix else ():  # a validation split is optional
            if name not in split:
                hint = (
                    suggest_name(name + suffix, unused)
                    or f"{data_name} holds {', '.join(arrays) or 'no arrays'}"
                )
                raise TaskError(f"{data_name}: there is no array `{name}{suffix}`; {hint}")
    return train, valid or None, notes


def _select_by_suffix(
    arrays: Mapping[str, np.ndarray], suffixes: tuple[str, ...]
) -> tuple[dict[str, np.ndarray], set[str]]:
    """Arrays of one split without their suffix, the first one in use, and their original names."""
    for suffix in suffixes:
        split = {name: arrays[name + suffix] for name in ARRAY_NAMES if name + suffix in arrays}
        if split:
            return split, {name + suffix for name in split}
    return {}, set()


def _rename_to_source_and_target(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """For an encoder-decoder network, treat `x` and `y` as `source` and `target`."""
    if "source" in arrays or "target" in arrays or "x" not in arrays:
        return arrays
    new_names = {"x": "source", "y": "target"}
    return {new_names.get(name, name): array for name, array in arrays.items()}


def _format_names(names: list[str]) -> str:
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'}"

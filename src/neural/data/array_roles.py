"""Array names: `x` and `y`, or `source` and `target`, their masks, and the suffixes of splits.

The role of an array is its name without the suffix: `x_valid` has the role `x`. A network with two
streams is an encoder and a decoder, which take `source` and `target`.
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

ARRAY_ROLES = ("x", "y", "mask", "source", "target", "target_mask")
TRAIN_SUFFIXES = ("", "_train")
"""Suffixes of training arrays, in order of preference."""
VALID_SUFFIXES = ("_valid", "_val", "_validation", "_test")
"""Suffixes of validation arrays, in order of preference."""


def assign_roles(
    arrays: Mapping[str, np.ndarray], data_name: str, network: Network
) -> tuple[Arrays, Arrays | None, list[str]]:
    """Sort arrays into (training arrays by role, validation arrays by role or None, notes).

    Arrays under other names are ignored; a note lists them.
    """
    train, train_names = _select_by_suffix(arrays, TRAIN_SUFFIXES)
    valid, valid_names = _select_by_suffix(arrays, VALID_SUFFIXES)
    unused = [name for name in arrays if name not in train_names | valid_names]
    notes = [f"{data_name}: {_format_names(unused)} not used"] if unused else []
    if any(name.endswith("_test") for name in valid_names):
        notes.append(f"{data_name}: {_format_names(sorted(valid_names))} used for validation")
    if network.has_two_streams:
        train, valid = _rename_streams(train), _rename_streams(valid)
    required_roles = ("source", "target") if network.has_two_streams else ("x", "y")
    for split, suffix in ((train, ""), (valid, "_valid")):
        for name in required_roles if split or not suffix else ():
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
    """Arrays of one split by role, for the first suffix in use, and their original names."""
    for suffix in suffixes:
        split = {role: arrays[role + suffix] for role in ARRAY_ROLES if role + suffix in arrays}
        if split:
            return split, {role + suffix for role in split}
    return {}, set()


def _rename_streams(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """For an encoder-decoder network, treat `x` and `y` as `source` and `target`."""
    if "source" in arrays or "target" in arrays or "x" not in arrays:
        return arrays
    new_names = {"x": "source", "y": "target"}
    return {new_names.get(name, name): array for name, array in arrays.items()}


def _format_names(names: list[str]) -> str:
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'}"

"""What arrays may be called: `x` and `y`, or `source` and `target`, their masks, and what is held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from neural.core.names import did_you_mean
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    import numpy as np

    from neural.language.network import Network
    from neural.tasks.data.source import Arrays

ROLES = ("x", "y", "mask", "source", "target", "target_mask")
TRAIN = ("", "_train")
VALID = ("_valid", "_val", "_validation", "_test")
"""What is held out, the first one found."""


def arrange(found: Mapping[str, np.ndarray], where: str, network: Network) -> tuple[Arrays, Arrays | None, list[str]]:
    """The arrays to train on and those held out, by their roles, and remarks; others are left aside, and named."""
    train, used = _with(found, TRAIN)
    valid, more = _with(found, VALID)
    aside = [name for name in found if name not in used | more]
    remarks = [f"{where}: {_listed(aside)} not used"] if aside else []
    if any(name.endswith("_test") for name in more):
        remarks.append(f"{where}: {_listed(sorted(more))} used for validation")
    if network.two_streams:
        train, valid = _streams(train), _streams(valid)
    inputs = ("source", "target") if network.two_streams else ("x", "y")
    for part, suffix in ((train, ""), (valid, "_valid")):
        for name in inputs if part or not suffix else ():
            if name not in part:
                help_ = did_you_mean(name + suffix, aside) or f"{where} holds {', '.join(found) or 'nothing'}"
                raise TaskError(f"{where}: there is no array `{name}{suffix}`; {help_}")
    return train, valid or None, remarks


def _with(found: Mapping[str, np.ndarray], suffixes: tuple[str, ...]) -> tuple[dict[str, np.ndarray], set[str]]:
    """The arrays of one part by role, under the first suffix that there is, and the names that they had."""
    for suffix in suffixes:
        part = {role: found[role + suffix] for role in ROLES if role + suffix in found}
        if part:
            return part, {role + suffix for role in part}
    return {}, set()


def _streams(part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`x` and `y` of a network with two sequences are its source and its target."""
    if "source" in part or "target" in part or "x" not in part:
        return part
    names = {"x": "source", "y": "target"}
    return {names.get(name, name): array for name, array in part.items()}


def _listed(names: list[str]) -> str:
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'}"

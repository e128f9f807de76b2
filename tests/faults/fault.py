"""A fault to plant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One change of one file under src/neural, and the tests of which at least one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

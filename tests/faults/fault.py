"""A fault to plant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One change inside one symbol of src/neural, and the tests of which at least one must fail.

    `symbol` is `file.py:Class.method`; `old` and `new` are code, matched by syntax tree (see planting.py).
    """

    name: str
    symbol: str
    old: str
    new: str
    tests: tuple[str, ...]

"""All promises of one entry: of its kind, and of every entry."""

from __future__ import annotations

from collections.abc import Iterator

from neural.contract import entries, layers, layers_padding, mechanisms, mechanisms_in_torch
from neural.contract.entries import Entry, registry_of
from neural.contract.promise import Check, Promise, promises_in
from neural.language.layer import Layer
from neural.modules.mechanism import Mechanism

BY_KIND = {Mechanism: (mechanisms, mechanisms_in_torch), Layer: (layers, layers_padding)}
"""A kind that is not here keeps the promises of every entry."""


def promises_of(entry: Entry) -> list[Check]:
    """Whatever a mechanism, a layer or another entry promises, one check per case; calling a check looks."""
    registry_of(entry)   # refuses what is no entry at all
    return [Check(one, entry, case) for one in promised(entry) if one.applies(entry) for case in one.cases]


def promised(entry: Entry) -> Iterator[Promise]:
    """First what any entry promises, then what its kind does."""
    yield from promises_in(entries)
    for kind, files in BY_KIND.items():
        if issubclass(entry, kind):
            for file in files:
                yield from promises_in(file)

"""`--set training.learning_rate=3e-4`: a change to settings, read into the same tree as a file."""

from __future__ import annotations

import re
from dataclasses import replace

from neural.core.diagnostics import Findings, Source, Where
from neural.core.yaml_places import Entry, Node, read

_CHANGE = re.compile(r"\s*([^\s=.]+(?:\.[^\s=.]+)*)\s*=")


def read_change(source: Source, findings: Findings) -> Node | None:
    """The tree that a change stands for: nested keys, and a YAML value at the end. None where it cannot be read."""
    found = _CHANGE.match(source.text)
    if found is None:
        whole, example = Where(0, len(source.text)), "write it like `training.learning_rate=3e-4`"
        findings.say("E0805", "a change is KEY=VALUE, the key with dots between its parts", whole, helps=[example])
        return None
    value = read(source, findings, start=found.end())
    if value is None:
        return None
    for key in reversed([*re.finditer(r"[^.]+", found[1])]):
        where = Where(found.start(1) + key.start(), found.start(1) + key.end())
        entry = Entry(Node(source, where, key[0]), value)
        value = Node(source, where, {key[0]: entry}, block=True, added=True)
    return value


def merged(tree: Node, change: Node) -> Node:
    """The tree with the change made."""
    if not (change.added and isinstance(tree.value, dict) and isinstance(change.value, dict)):
        return change
    entries = dict(tree.value)
    for name, entry in change.value.items():
        old = entries.get(name)
        entries[name] = Entry(entry.key, merged(old.node, entry.node) if old else entry.node)
    return replace(tree, value=entries)

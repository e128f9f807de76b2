"""The tree of a file laid against the settings it is meant for: every key under its field's own name."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel

from neural.core.diagnostics import Fix, Label
from neural.core.fields import inside, sections, spellings, takes_null
from neural.core.mistakes import Mistakes
from neural.core.names import closest
from neural.core.yaml_places import Entry, Node, short

FEW = 12
"""Up to this many known keys are listed where nothing is near."""
LISTED = "`neural schema --format markdown` lists what a file may say"


class Fitting:
    """Finds the keys that are unknown and those that say the same thing twice, and leaves them out."""

    def __init__(self, kind: type[BaseModel], mistakes: Mistakes, *, loosely: bool = False) -> None:
        self.kind, self.mistakes, self.loosely = kind, mistakes, loosely
        self.meant: set[tuple[str | int, ...]] = set()
        """Paths of the fields that misspelt keys were probably meant for: nobody need hear that they are missing."""

    def fit(self, node: Node) -> Node:
        """The whole tree."""
        return self._fit(node, self.kind, ())

    def _fit(self, node: Node, kind: object, path: tuple[str | int, ...]) -> Node:
        known = sections(kind)
        if known and node.value is None and not takes_null(kind):
            return replace(node, value={})   # a section whose lines are all comments
        if known and isinstance(node.value, dict):
            return self._section(node, known, kind, path)
        if isinstance(node.value, list):
            items = [self._fit(one, inside(kind, at), (*path, at)) for at, one in enumerate(node.value)]
            return replace(node, value=items)
        if isinstance(node.value, dict):
            items = {
                name: Entry(one.key, self._fit(one.node, inside(kind, name), (*path, name)))
                for name, one in node.value.items()
            }
            return replace(node, value=items)
        return node

    def _section(
        self, node: Node, known: list[type[BaseModel]], kind: object, path: tuple[str | int, ...]
    ) -> Node:
        names = {typed: name for one in known for typed, name in spellings(one).items()}
        entries: dict[str, Entry] = {}
        for typed, entry in node.value.items():
            name = names.get(typed)
            if name is None:
                self._unknown(entry.key, typed, names, path)
            elif name in entries:
                labels = [Label(entries[name].key.where, "first here")]
                message = f"`{typed}` and `{entries[name].key.value}` are two names for one thing"
                self.mistakes.of(entry.key.source).say("E0806", message, entry.key.where, labels=labels)
            else:
                entries[name] = Entry(entry.key, self._fit(entry.node, inside(kind, name), (*path, name)))
        return replace(node, value=entries)

    def _unknown(self, key: Node, typed: str, names: dict[str, str], path: tuple[str | int, ...]) -> None:
        if self.loosely:
            return
        guess, fix = closest(typed, names), None
        homes = [
            name for name in self.kind.model_fields
            for section in sections(inside(self.kind, name)) if typed in spellings(section) and (name,) != path
        ]  # fmt: skip
        if homes:
            way_out = f"it belongs in the section `{homes[0]}`"
        elif guess:
            way_out = f"did you mean `{guess}`?"
            fix = Fix(key.where, guess)
            self.meant.add((*path, names[guess]))
        elif typed == "<<":
            way_out = "merging is not part of YAML 1.2: write the keys out"
        else:
            way_out = f"known here: {', '.join(dict.fromkeys(names.values()))}" if len(names) <= FEW else LISTED
        section = f"in `{path[-1]}`" if path and isinstance(path[-1], str) else "here"
        message = f"`{short(typed)}` is not known {section}"
        self.mistakes.of(key.source).say("E0801", message, key.where, helps=[way_out], fix=fix)

"""What could be written at a place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import Where
from neural.core.registry import Registry
from neural.language.declaration import Declared, Setting
from neural.language.kinds import Entry, Flag, Several
from neural.language.train import Train
from neural.lsp.document import Document
from neural.lsp.meaning import NETWORK, SECTIONS, arguments, declaration, entry, options, registry_of, setting_at
from neural.lsp.outline import Part
from neural.lsp.wording import of_entry, of_setting

STARTS = {
    "input": "input: (${1:100}, ${2:64})", "layers": "layers:\n  $0", "loss": 'loss: "$1"',
    "optimizer": "optimizer: $0", "train": "train {\n  $0\n}",
}  # fmt: skip
WHOLE = "network ${1:Name} {\n  input: (${2:100}, ${3:64})\n  layers:\n    $0\n}"
NAMES_NOTHING = ("*", "network")
"""Behind these comes a number, or a name that nobody knows yet."""
_HOLE = re.compile(r"\$(?:\d|\{\d:(\d*)[^}]*\})")


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that could stand there; `text` is a snippet with places to fill in (`$1`) where `snippet` says so."""

    label: str
    kind: str
    doc: str
    text: str
    snippet: bool = False

    @property
    def plain(self) -> str:
        """For editors that know no snippets: sizes stay as they are proposed, other places are empty."""
        return _HOLE.sub(r"\1", self.text) if self.snippet else self.text


def complete(document: Document, offset: int) -> tuple[Where, list[Offer]]:
    """What could be written, and the stretch of text that it replaces."""
    outline = document.outline
    token = outline.token(offset)
    if outline.comment(offset):
        return Where(offset, offset), []
    if token is not None and token.kind == "string" and token.where.start < offset:
        closed = len(token.text) > 1 and document.text[token.where.end - 1] == token.text[0]
        inner = Where(token.where.start + 1, token.where.end - closed)
        if offset <= inner.end:
            return inner, list(_words(document, token.where.start))
        return Where(offset, offset), []
    before = outline.before(token.where.start if token is not None and token.kind == "name" else offset)
    if (token is not None and token.kind == "number") or (before is not None and before.text in NAMES_NOTHING):
        return Where(offset, offset), []
    is_word = token is not None and token.kind == "name" and token.where.start < offset
    word = token.where if token is not None and is_word else Where(offset, offset)
    follows = document.text[word.end : word.end + 40].lstrip()[:1]
    return word, list(_offers(document, word, follows))


def _words(document: Document, offset: int) -> Iterator[Offer]:
    """What may stand in quotes."""
    part = document.outline.file.at(offset)
    registry = registry_of(part, document.catalogue, offset)
    one = setting_at(part, document.catalogue, offset)
    names = options(one) if one else registry.names() if registry and part.kind == "section" else []
    for name in names:
        chosen = entry(registry, name)
        yield Offer(name, "value", of_entry(chosen, registry) if chosen and registry else "", name)


def _offers(document: Document, word: Where, follows: str) -> Iterator[Offer]:
    part = document.outline.file.at(word.start)
    if part.kind == "group":
        return
    if part.kind == "call":
        yield from _in_call(document, part, word, follows)
    elif part.kind == "section" and not _is_over(document, part, word):
        yield from _in_section(document, part, word, follows)
    else:
        if part.kind == "section":
            yield from _calls(document.catalogue.layers, follows) if part.name == "layers" else ()
            part = part.outer or part
        yield from _starts(part, follows)


def _is_over(document: Document, section: Part, word: Where) -> bool:
    """Whether a new line begins behind a section's value: its next one may be meant."""
    before = document.text[section.start : word.start]
    fresh = not before.rpartition("\n")[2].strip() and "\n" in before
    return fresh and (section.name == "layers" or bool(before.strip()))


def _starts(part: Part, follows: str) -> Iterator[Offer]:
    """What begins a line of a network, of `train`, or of a file."""
    given = {one.name for one in part.inside}
    if part.kind == "block":
        for one in Train.settings().values() if part.name == "train" else ():
            if one.name not in given:
                yield Offer(one.name, "argument", of_setting(one, "train"), _then(one.name, ": ", follows))
        return
    if part.kind == "file":
        yield Offer("network", "section", NETWORK, WHOLE, snippet=True)
    for name, doc in SECTIONS.items():
        if name not in given and (part.kind == "network" or name == "train"):
            plain = follows in (":", "{")
            yield Offer(name, "section", doc, name if plain else STARTS[name], snippet=not plain)


def _in_section(document: Document, part: Part, word: Where, follows: str) -> Iterator[Offer]:
    """The value of a section, or of a key of `train`."""
    registry = registry_of(part, document.catalogue, word.start)
    one = setting_at(part, document.catalogue, word.start)
    if one is not None:
        yield from _values(one, follows)
    elif registry is not None:
        if registry.spelling == "file":
            yield from _quoted(registry)
        yield from _calls(registry, follows)


def _in_call(document: Document, call: Part, word: Where, follows: str) -> Iterator[Offer]:
    """Names of arguments that are not given yet; behind `=`, values."""
    found = call.argument(word.start)
    declared = declaration(call, document.catalogue)
    if found is None or declared is None:
        return
    number, here = found
    one = setting_at(call, document.catalogue, word.start)
    if here.name is not None and here.name.where.end <= word.start:
        yield from _values(one, follows) if one else ()
        return
    if one is not None and isinstance(one.kind, Several):
        yield from _values(one, follows)
    order = list(declared.settings())
    given = {other.name.text for other in call.given if other.name is not None and other is not here}
    given |= {name for place, name in enumerate(order) if place < number and call.given[place].name is None}
    for name, each in arguments(call, document.catalogue).items():
        if not given & {name, *each.aliases} and not isinstance(each.kind, Several):
            owner = call.name if name in order else "the chosen entry"
            yield Offer(name, "argument", of_setting(each, owner), _then(name, "=", follows))


def _values(one: Setting, follows: str) -> Iterator[Offer]:
    """What an argument takes, as far as it can be listed."""
    if isinstance(one.kind, Flag):
        yield from (Offer(word, "value", of_setting(one, one.name), word) for word in ("true", "false"))
    elif isinstance(one.kind, Entry):
        if one.kind.or_number is None:
            yield from _quoted(one.kind.registry)
        else:
            yield from _calls(one.kind.registry, follows)
    elif isinstance(one.kind, Several):
        yield from _calls(one.kind.registry, follows)
    else:
        yield from (Offer(f'"{word}"', "value", of_setting(one, one.name), f'"{word}"') for word in options(one))


def _quoted(registry: Registry[Any]) -> Iterator[Offer]:
    for name in registry.names():
        yield Offer(f'"{name}"', "value", of_entry(registry.get(name), registry), f'"{name}"')


def _calls(registry: Registry[Any], follows: str) -> Iterator[Offer]:
    for name in registry.names():
        declared = registry.get(name)
        bare = follows == "("
        text = name if bare else f"{name}({_needed(declared)})"
        yield Offer(name, "layer", of_entry(declared, registry), text, snippet=not bare)


def _needed(declared: type[Declared]) -> str:
    """The arguments that have no default, as places to fill in."""
    needed = [one for one in declared.settings().values() if one.required]
    return ", ".join(
        f"{one.name}=${place}" if declared.names_all else f"${{{place}:{one.name}}}"
        for place, one in enumerate(needed, start=1)
    )


def _then(name: str, mark: str, follows: str) -> str:
    return name if follows == mark.strip() else f"{name}{mark}"

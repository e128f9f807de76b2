"""What stands at a place: the declaration that a call names, the argument, the entry that a word chooses."""

from __future__ import annotations

from typing import Any

from neural.core.registry import Registry, UnknownName
from neural.language.catalogue import Catalogue
from neural.language.declaration import Declared, Setting
from neural.language.kinds import Choice, Entry, Several
from neural.language.train import Train
from neural.lsp.outline import Part

SECTIONS = {
    "input": "The sizes of one example, such as `(100, 64)`: 100 positions with 64 features. `None` leaves one open; "
    "before an `Embedding`, `(100,)` is 100 token ids.",
    "layers": "The layers, one per line, in the order of the way through them. `Dense(10) * 3` makes three "
    "independent copies.",
    "loss": "How wrong a prediction is: what training makes smaller.",
    "optimizer": "How the weights follow the gradients, and with which learning rate.",
    "train": "How long to train, on what, with which safeguards; one key per line.",
}
"""What the sections of a network are."""
NETWORK = "A network: what comes in (`input:`), what happens to it (`layers:`), and how it is trained."


def registry_of(part: Part, catalogue: Catalogue, offset: int) -> Registry[Any] | None:
    """Where the names of calls are looked up at a place in this part."""
    if part.kind == "section":
        sections = {"layers": catalogue.layers, "loss": catalogue.losses, "optimizer": catalogue.optimizers}
        return sections.get(part.name)
    if part.kind == "call":
        one = setting_at(part, catalogue, offset)
        return one.kind.registry if one is not None and isinstance(one.kind, Entry | Several) else None
    return catalogue.layers if part.kind == "file" else None   # layers alone: a fragment


def declaration(call: Part, catalogue: Catalogue) -> type[Declared] | None:
    """What a call names."""
    registry = registry_of(call.outer, catalogue, call.where.start) if call.outer else None
    return entry(registry, call.name) if call.kind == "call" else None


def entry(registry: Registry[Any] | None, name: str) -> type[Declared] | None:
    """The entry of that name, if there is one."""
    if registry is None or not name:
        return None
    try:
        return registry.get(name, loosely=True)
    except UnknownName:
        return None


def arguments(call: Part, catalogue: Catalogue) -> dict[str, Setting]:
    """What a call may say: its own arguments, and those of the entries that it chooses by name."""
    declared = declaration(call, catalogue)
    own = declared.settings() if declared else {}
    lent: dict[str, Setting] = {}
    for number, given in enumerate(call.given):
        one = _setting(own, number, given.name.text if given.name else None)
        if one is not None and isinstance(one.kind, Entry) and given.value is not None and given.value.kind == "string":
            chosen = entry(one.kind.registry, str(given.value.value))
            lent |= chosen.settings() if chosen else {}
    return {**lent, **own}


def setting_at(part: Part, catalogue: Catalogue, offset: int) -> Setting | None:
    """The argument around a place in a call, or the key of `train` that a section is."""
    if part.kind == "section" and part.outer is not None and part.outer.kind == "block":
        return Train.settings().get(part.name) if part.outer.name == "train" else None
    found = part.argument(offset) if part.kind == "call" else None
    if found is None:
        return None
    number, given = found
    return _setting(arguments(part, catalogue), number, given.name.text if given.name else None)


def _setting(known: dict[str, Setting], number: int, name: str | None) -> Setting | None:
    if name is not None:
        return known.get(name) or next((one for one in known.values() if name in one.aliases), None)
    several = next((one for one in known.values() if isinstance(one.kind, Several)), None)
    return several or next(iter(list(known.values())[number : number + 1]), None)


def options(one: Setting) -> list[str]:
    """The words that an argument takes in quotes."""
    if isinstance(one.kind, Choice):
        return list(one.kind.options)
    return one.kind.registry.names() if isinstance(one.kind, Entry) and one.kind.or_number is None else []

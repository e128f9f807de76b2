"""A call on its own, such as the optimizer in an experiment file: `AdamW(learning_rate=3e-4)`."""

from __future__ import annotations

from typing import TypeVar

from neural.core.diagnostics import Findings
from neural.core.registry import Registry
from neural.language.binding import Binder
from neural.language.declaration import Declared
from neural.language.parser import parse
from neural.language.syntax import Call, Layer

Made = TypeVar("Made", bound=Declared)


class NotACall(ValueError):
    """A text that is no call of anything known; the message says what is wrong with it."""


def read_call(text: str, registry: Registry[Made]) -> Made:
    """The instance that a text spells; a name alone is a call without arguments."""
    findings = Findings()
    written = text.strip().strip('"')
    items = parse(written if "(" in written else f"{written}()", findings).items
    found = items[0].call if len(items) == 1 and isinstance(items[0], Layer) else None
    if isinstance(found, Call) and not findings.mistakes:
        made = Binder(findings).call(found, registry, loosely=True).made
        if made is not None and not findings.mistakes:
            return made
    said = [f"{one.message}{''.join(f' ({way})' for way in one.helps[:1])}" for one in findings.mistakes]
    raise NotACall("; ".join(said) or f"`{text[:60]}` is no {registry.noun}; known: {', '.join(registry.names())}")

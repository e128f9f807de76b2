"""Parse a single call of the `.neural` language, such as `AdamW(learning_rate=3e-4)`.

Experiment files use it to name an optimizer, for example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from neural.core.diagnostics import DiagnosticCollector
from neural.core.errors import NeuralError
from neural.core.registry import Registry
from neural.language.binder import Binder
from neural.language.declaration import Declaration
from neural.language.parser import parse
from neural.language.syntax import CallExpression, LayerStatement

DeclarationT = TypeVar("DeclarationT", bound=Declaration)


class InvalidCallError(NeuralError, ValueError):
    """A text that is not a call of a registry entry. The message says why."""


def parse_call(
    text: str, registry: Registry[DeclarationT], *, defaults: Mapping[str, Any] | None = None
) -> DeclarationT:
    """The instance of the registry entry that a text calls; a name alone has no arguments.

    `defaults` are values for arguments that the text does not give.
    """
    diagnostics = DiagnosticCollector()
    call_text = text.strip().strip('"')
    # a call outside a network is parsed as a layer
    items = parse(call_text if "(" in call_text else f"{call_text}()", diagnostics).items
    call = items[0].call if len(items) == 1 and isinstance(items[0], LayerStatement) else None
    if isinstance(call, CallExpression) and not diagnostics.errors:
        instance = (
            Binder(diagnostics)
            .bind_call(call, registry, ignore_case=True, defaults=defaults)
            .instance
        )
        if instance is not None and not diagnostics.errors:
            return instance
    messages = [
        error.message + "".join(f" ({help_text})" for help_text in error.helps[:1])
        for error in diagnostics.errors
    ]
    raise InvalidCallError(
        "; ".join(messages)
        or f"`{text[:60]}` is no {registry.noun}; known: {', '.join(registry.names())}"
    )

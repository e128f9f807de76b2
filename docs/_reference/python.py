"""What `import neural` gives: signatures and docstrings of its public names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import neural

from .pieces import doc, fence, joined

LEAD = """
What `import neural` gives. Everything else is imported from the file that defines it:
`from neural.tracking.run import Run`.
"""


def pages() -> dict[str, str]:
    """One page."""
    sections = [joined(*_section(name, getattr(neural, name))) for name in neural.__all__]
    return {"python": joined("# In Python", LEAD.strip(), *sections)}


def _section(name: str, thing: Any) -> Iterator[str]:
    yield f"## neural.{name} {{ #{name.lower()} }}"
    if inspect.isclass(thing):
        yield doc(thing)
        for method, value in vars(thing).items():
            inner = value.fget if isinstance(value, property) else value
            if not method.startswith("_") and callable(inner):
                called = method if isinstance(value, property) else f"{method}{_signature(inner)}"
                yield f"- `{called}`: {doc(inner)}"
    else:
        yield fence(f"{name}{_signature(thing)}", "python")
        yield inspect.getdoc(thing) or ""


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "").replace("(self, ", "(").replace("(self)", "()")

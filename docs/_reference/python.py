"""Python reference: signatures and docstrings of the public names of `neural`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import neural

from .markdown import docstring, fence, join_paragraphs

INTRODUCTION = """
The public names of `import neural`. Everything else is imported from the module that defines it:
`from neural.runs.run import Run`.
"""


def pages() -> dict[str, str]:
    """One page with all public names."""
    sections = [
        join_paragraphs(*_format_section(name, getattr(neural, name))) for name in neural.__all__
    ]
    return {"python": join_paragraphs("# Python API", INTRODUCTION.strip(), *sections)}


def _format_section(name: str, public: Any) -> Iterator[str]:
    yield f"## neural.{name} {{ #{name.lower()} }}"
    if inspect.isclass(public):
        yield docstring(public)
        for method, value in vars(public).items():
            function = value.fget if isinstance(value, property) else value
            if not method.startswith("_") and callable(function):
                signature = "" if isinstance(value, property) else _format_signature(function)
                yield f"- `{method}{signature}`: {docstring(function)}"
    else:
        yield fence(f"{name}{_format_signature(public)}", "python")
        yield inspect.getdoc(public) or ""


def _format_signature(function: Any) -> str:
    return (
        str(inspect.signature(function))
        .replace("'", "")
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )

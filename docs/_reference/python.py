"""Python reference: signatures and docstrings of the public names of `neural`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import neural
from neural import sklearn

from .markdown import docstring, fence, join_paragraphs

MAX_SIGNATURE_LENGTH = 80
"""A longer signature has a line per parameter."""
INTRODUCTION = """
The public names of `import neural`, with [examples](../python.md). Everything else is imported from
the module that defines it: `from neural.runs.run import Run`.
"""


def pages() -> dict[str, str]:
    """One page with all public names."""
    public = {name: getattr(neural, name) for name in neural.__all__}
    public |= {f"sklearn.{name}": getattr(sklearn, name) for name in sklearn.__all__}
    sections = [join_paragraphs(*_format_section(name, value)) for name, value in public.items()]
    return {"python": join_paragraphs("# Python API", INTRODUCTION.strip(), *sections)}


def _format_section(name: str, public: Any) -> Iterator[str]:
    yield f"## neural.{name} {{ #{name.lower().replace('.', '-')} }}"
    if inspect.isclass(public):
        summary, _, details = (inspect.getdoc(public) or "").partition("\n\n")
        if "----------" in details:  # sections of scikit-learn: their layout is kept
            yield fence(f"{public.__name__}{_format_signature(public)}", "python")
            yield from (summary, fence(details))
        else:
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
    """The signature without `self`; a long one has a line per parameter."""
    signature = inspect.signature(function)
    parameters = [value for name, value in signature.parameters.items() if name != "self"]
    text = str(signature.replace(parameters=parameters))
    if len(text) > MAX_SIGNATURE_LENGTH:
        texts: list[str] = []
        for parameter in parameters:
            if parameter.kind is parameter.KEYWORD_ONLY and not any(
                text.startswith("*") for text in texts
            ):
                texts.append("*")
            texts.append(str(parameter))
        lines = ",\n    ".join(texts)
        returned = "" if " -> " not in text else text[text.rindex(" -> ") :]
        text = f"(\n    {lines},\n){returned}"
    text = re.sub(r"<function (\w+) at 0x\w+>", r"\1", text.removesuffix(" -> None"))
    # annotations are strings in quotes
    return re.sub(r"PosixPath\('(\w+)'\)", r'"\1"', text).replace("'", "")

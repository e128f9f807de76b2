"""Every mistake, warning and note of the checker, with the message made while the page is."""

from __future__ import annotations

from collections.abc import Iterator

from neural.cli.explain import SETTINGS, diagnosed
from neural.core.diagnostics import render
from neural.language import codes

from .pieces import fence, joined, table

LEAD = """
E are mistakes, W warnings, N notes; `neural explain CODE` says the same in a terminal. The messages were made by the
checker when this page was built.
"""


def pages() -> dict[str, str]:
    """One page with all codes."""
    every = [codes.get(name) for name in codes.names()]
    rows = [[f"[{one.code}](#{one.code.lower()})", one.title] for one in every]
    sections = [joined(*_section(one)) for one in every]
    return {"mistakes": joined("# Mistakes, warnings and notes", LEAD.strip(), table(["code", ""], rows), *sections)}


def _section(code: codes.Code) -> Iterator[str]:
    yield f"## {code.code}: {code.title} {{ #{code.code.lower()} }}"
    yield code.cause
    if code.wrong is not None:
        source, found = diagnosed(code.code, code.wrong)
        yield fence(code.wrong.text)
        yield fence("\n".join(render(one, source) for one in found if one.code == code.code))
    option = f" (with `--network {code.right.network}`)" if code.right.network else ""
    yield f"Better{option}:"
    yield fence(code.right.text, "yaml" if code.code.startswith(SETTINGS) else "neural")

"""Reference of diagnostics: every error, warning and note of the checker, with a real message."""

from __future__ import annotations

from collections.abc import Iterator

from neural.cli.explain import SETTINGS_CODE_PREFIX, diagnose_example
from neural.core.diagnostics import render_diagnostic
from neural.language import diagnostic_codes

from .markdown import fence, join_paragraphs, table

INTRODUCTION = """
Codes start with E for errors, W for warnings, N for notes. `neural explain CODE` prints the same
in a terminal. The checker produced these messages when this page was built.
"""


def pages() -> dict[str, str]:
    """One page with all codes."""
    codes = [diagnostic_codes.load_code(name) for name in diagnostic_codes.list_codes()]
    overview = table(
        ["code", ""], [[f"[{code.code}](#{code.code.lower()})", code.title] for code in codes]
    )
    sections = [join_paragraphs(*_format_section(code)) for code in codes]
    title = "# Errors, warnings and notes"
    return {"diagnostics": join_paragraphs(title, INTRODUCTION.strip(), overview, *sections)}


def _format_section(code: diagnostic_codes.DiagnosticCode) -> Iterator[str]:
    yield f"## {code.code}: {code.title} {{ #{code.code.lower()} }}"
    yield code.cause
    if code.wrong is not None:
        source, diagnostics = diagnose_example(code.code, code.wrong)
        yield fence(code.wrong.text)
        yield fence(
            "\n".join(
                render_diagnostic(diagnostic, source)
                for diagnostic in diagnostics
                if diagnostic.code == code.code
            )
        )
    option = f" (with `--network {code.right.network}`)" if code.right.network else ""
    yield f"Better{option}:"
    yield fence(code.right.text, "yaml" if code.code.startswith(SETTINGS_CODE_PREFIX) else "neural")

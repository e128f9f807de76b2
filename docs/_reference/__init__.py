"""Reference pages, generated from the package. Each module has `pages()`: Markdown by path."""

from __future__ import annotations

from . import catalogue, commands, diagnostics, findings, measures, python, settings

GENERATORS = (catalogue, settings, commands, python, measures, findings, diagnostics)


def pages() -> dict[str, str]:
    """All generated pages by their paths below docs/."""
    return {
        f"reference/{name}.md": text
        for generator in GENERATORS
        for name, text in generator.pages().items()
    }

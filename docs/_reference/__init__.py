"""The pages that are made from the package: a file of this folder gives some, as Markdown by path."""

from __future__ import annotations

from . import catalogue, commands, findings, measures, mistakes, python, settings

SOURCES = (catalogue, settings, commands, python, measures, findings, mistakes)


def pages() -> dict[str, str]:
    """Every page by its path below docs/."""
    return {f"reference/{name}.md": text for source in SOURCES for name, text in source.pages().items()}

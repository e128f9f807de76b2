"""Reference of experiment files: all keys of each task, as `neural schema` prints them."""

from __future__ import annotations

from neural.core.schema import format_tables
from neural.tasks import registry

from .markdown import docstring, join_paragraphs


def pages() -> dict[str, str]:
    """One page per task."""
    return {f"settings/{name}": _format_page(name) for name in registry.names()}


def _format_page(name: str) -> str:
    task = registry.get(name)
    introduction = (
        f"All keys of an experiment file with `task: {name}`. [Experiments](../../experiments.md) "
        "explains how such files are read. In the terminal: "
        f"`neural schema {name} --format markdown`."
    )
    tables = "\n".join(format_tables(task.Settings))
    return join_paragraphs(f"# {name}", docstring(task), introduction, "## All keys", tables)

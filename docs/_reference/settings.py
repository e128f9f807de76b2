"""Every key of an experiment file, a page per task: the tables that `neural schema TASK --format markdown` prints."""

from __future__ import annotations

from neural.core.schema import tables
from neural.tasks import registry

from .pieces import doc, joined


def pages() -> dict[str, str]:
    """One page per task."""
    return {f"settings/{name}": _page(name) for name in registry.names()}


def _page(name: str) -> str:
    task = registry.get(name)
    lead = (
        f"Every key of an experiment file with `task: {name}`; how such files are read is told under "
        f"[experiments](../../experiments.md). In the terminal: `neural schema {name} --format markdown`."
    )
    first, *rest = tables(task.Settings)
    return joined(f"# {name}", doc(task), lead, "## All keys", "\n".join([first, *rest]))

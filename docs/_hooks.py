"""What happens while the site is built: pages are made from the registries, and folders of `nav` are listed.

Nothing generated is kept: what a page says is what the package says at that moment. The pages themselves
(`_reference/`) know nothing of mkdocs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _reference import pages  # mkdocs looks for modules beside a hook
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_made: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the pages; an entry of `nav` that ends with a slash stands for every page of that folder."""
    _made.clear()
    _made.update(pages())
    config.nav = _listed(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the pages beside those that were written by hand."""
    for path, text in _made.items():
        files.append(File.generated(config, path, content=text))
    return files


def _listed(entry: Any, docs: Path) -> Any:
    if isinstance(entry, list):
        return [_listed(one, docs) for one in entry]
    if isinstance(entry, dict):
        return {title: _listed(inside, docs) for title, inside in entry.items()}
    if not entry.endswith("/"):
        return entry
    written = {str(file.relative_to(docs)) for file in (docs / entry).glob("*.md")}
    return sorted(written | {path for path in _made if path.startswith(entry)})

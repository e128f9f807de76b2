"""mkdocs hooks: add the generated reference pages, and list folders in `nav`.

Generated pages are not saved; each build reads the package again. In a checkout, each has a short
page in reference/ in its place, so that links work there, too: it says where the content is.
`_reference/` does not depend on mkdocs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _reference import pages  # mkdocs adds the hook's folder to sys.path
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_generated_pages: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate the pages; an entry of `nav` with a final slash is every page of that folder."""
    _generated_pages.clear()
    _generated_pages.update(pages())
    config.nav = _expand_folders(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of the site, in place of the pages of a checkout."""
    for path, text in _generated_pages.items():
        checkout_page = files.get_file_from_path(path)
        if checkout_page is not None:
            files.remove(checkout_page)
        files.append(File.generated(config, path, content=text))
    return files


def _expand_folders(entry: Any, docs: Path) -> Any:
    if isinstance(entry, list):
        return [_expand_folders(child, docs) for child in entry]
    if isinstance(entry, dict):
        return {title: _expand_folders(child, docs) for title, child in entry.items()}
    if not entry.endswith("/"):
        return entry
    written = {str(file.relative_to(docs)) for file in (docs / entry).glob("*.md")}
    return sorted(written | {path for path in _generated_pages if path.startswith(entry)})

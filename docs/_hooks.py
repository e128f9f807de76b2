"""mkdocs hooks: add the generated reference pages and the pages of the repository's root.

Generated pages are not saved; each build reads the package again. In a checkout, each has a short
page in reference/ in its place, so that links work there, too: it says where the content is.
`_reference/` and `_repository_links.py` do not depend on mkdocs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from _reference import pages  # mkdocs adds the hook's folder to sys.path
from _repository_links import BRANCH, adapt_links, read_repository_url, read_root_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_generated_pages: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate the pages; an entry of `nav` with a final slash is every page of that folder.

    The address of the repository comes from the metadata of the package.
    """
    _generated_pages.clear()
    _generated_pages.update(pages() | read_root_pages())
    config.repo_url = read_repository_url()
    config.repo_name = urlsplit(config.repo_url).path.strip("/")
    config.edit_uri = f"edit/{BRANCH}/docs/"
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


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to source files lead to the repository, and choose the columns of a page.

    A page alone under its tab has no navigation, which would list only that page. Tutorials have no
    table of contents: they are read from the start, and their outputs need the width.
    """
    assert config.repo_url is not None
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    elif page.file.src_uri.startswith(("tutorial-", "walkthrough-")):
        page.meta["hide"] = ["toc"]
    return adapt_links(markdown, page.file.src_uri, config.repo_url)


def _expand_folders(entry: Any, docs: Path) -> Any:
    if isinstance(entry, list):
        return [_expand_folders(child, docs) for child in entry]
    if isinstance(entry, dict):
        return {title: _expand_folders(child, docs) for title, child in entry.items()}
    if not entry.endswith("/"):
        return entry
    written = {str(file.relative_to(docs)) for file in (docs / entry).glob("*.md")}
    return sorted(written | {path for path in _generated_pages if path.startswith(entry)})

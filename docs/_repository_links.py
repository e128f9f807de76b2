"""Links of the site to files of the repository.

In a checkout, a page links to a source file by a relative path. The site has no such file, so the
link leads to the repository on the web. Some pages of the site are files at the root of the
repository (`ROOT_PAGES`); links to them and from them are changed accordingly.
"""

from __future__ import annotations

import os.path
import re
import tomllib
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
"""Files at the root of the repository that are pages of the site, with their names there."""
BRANCH = "main"
CODE = re.compile(r"^(```+|~~~+).*?^\1\s*$|`[^`\n]*`", re.M | re.S)
LINK_TARGET = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?((?:\s+\"[^\"]*\")?\))")
WITH_SCHEME = re.compile(r"[a-z][a-z+.-]*:")


def read_repository_url() -> str:
    """Address of the repository, from the metadata of the package."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return metadata["project"]["urls"]["Repository"].rstrip("/")


def read_root_pages() -> dict[str, str]:
    """Text by path in the site, of those root pages that exist."""
    return {
        page: (ROOT / name).read_text(encoding="utf-8")
        for name, page in ROOT_PAGES.items()
        if (ROOT / name).is_file()
    }


def adapt_links(text: str, page: str, repository: str) -> str:
    """The Markdown of a page with links that work on the site.

    `page` is its path in the site. Code is not changed.
    """
    source = next((name for name, other in ROOT_PAGES.items() if other == page), f"docs/{page}")

    def adapt(match: re.Match[str]) -> str:
        opening, target, anchor, closing = match.groups()
        if WITH_SCHEME.match(target) or target.startswith("/"):
            return match[0]
        path = os.path.normpath(PurePosixPath(source).parent / target)
        return f"{opening}{_find_address(path, page, repository)}{anchor or ''}{closing}"

    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [LINK_TARGET.sub(adapt, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK_TARGET.sub(adapt, text[end:])])


def _find_address(path: str, page: str, repository: str) -> str:
    """Address of a file of the repository, seen from a page of the site."""
    if path in ROOT_PAGES and (ROOT / path).is_file():
        in_site = ROOT_PAGES[path]
    elif path.startswith("docs/"):
        in_site = path.removeprefix("docs/")
    else:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{repository}/{kind}/{BRANCH}/{path}"
    return os.path.relpath(in_site, PurePosixPath(page).parent).replace(os.sep, "/")

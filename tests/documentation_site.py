"""The documentation site, as `make docs` builds it."""

import logging
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def build_site(folder: Path) -> Path:
    """Build the site in strict mode: a warning is an error."""
    with pytest.MonkeyPatch.context() as patch:
        # a notice about the theme's future, not about these pages
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        logging.getLogger("mkdocs").setLevel(logging.WARNING)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder

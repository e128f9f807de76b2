"""docs/platforms.md names tests that exist, and every test of this folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.findall(
    r"`(tests/[\w/]+\.py)::(\w+)`",
    (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8"),
)


def list_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists():
    assert len(NAMED) > 40
    for file, name in NAMED:
        assert name.startswith("test_")
        assert name in list_tests(ROOT / file), f"{file} has no {name}"


def test_the_page_names_every_test_about_other_systems():
    files = [
        *Path(__file__).parent.glob("test_*.py"),
        *ROOT.glob("tests/core/test_platform_*.py"),
    ]
    for path in files:
        file = path.relative_to(ROOT).as_posix()
        tests = {name for name in list_tests(path) if name.startswith("test_")}
        if path != Path(__file__):
            assert tests == {name for named, name in NAMED if named == file}, file

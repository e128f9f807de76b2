"""What the package stands on is written down, and none of it binds its users."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text()
EXTRAS = {extra: lines for extra, lines in PROJECT["optional-dependencies"].items() if extra != "dev"}


def named(line):
    return re.split(r"[^\w.-]", line, maxsplit=1)[0]


def rows(heading):
    """The cells of a table's rows."""
    table = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_requirement_has_a_row():
    assert [row[0] for row in rows("Always")[2:]] == [named(line) for line in PROJECT["dependencies"]]


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_has_its_rows(extra):
    told = {name.strip() for row in rows("Extras")[2:] if row[0] == extra for name in row[1].split(",")}
    assert told == {named(line) for line in EXTRAS[extra]}


def test_every_other_package_for_development_is_named():
    last, known = PAGE.partition("## For tests and development")[2], str(EXTRAS)
    for line in PROJECT["optional-dependencies"]["dev"]:
        assert named(line) in last or named(line) in known, line


@pytest.mark.parametrize("name", [named(line) for line in PROJECT["dependencies"]])
def test_nothing_that_is_always_installed_is_copyleft(name):
    about = metadata(name)
    said = " ".join([about.get("License-Expression") or "", *(about.get_all("Classifier") or [])])
    assert not re.search(r"\bA?GPL|General Public License", said), said


def test_exact_versions_are_there_for_all_of_them():
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert {named(line).lower() for line in lines} <= pinned

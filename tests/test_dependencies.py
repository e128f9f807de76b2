"""Every dependency is documented and pinned, and none that is always installed is copyleft."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text()
EXTRAS = {
    extra: lines
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra not in ("all", "dev")
}


def parse_name(line):
    return re.split(r"[^\w.-]", line, maxsplit=1)[0]


def read_table(heading):
    """Cells of the rows of a table of the page."""
    table = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_requirement_has_a_row():
    assert [row[0] for row in read_table("Always")[2:]] == [
        parse_name(line) for line in PROJECT["dependencies"]
    ]


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_package_of_an_extra_has_a_row(extra):
    documented = {
        name.strip()
        for row in read_table("Extras")[2:]
        if row[0] == extra
        for name in row[1].split(",")
    }
    assert documented == {parse_name(line) for line in EXTRAS[extra]}


def test_every_development_package_is_documented():
    section, extras = PAGE.partition("## For tests and development")[2], str(EXTRAS)
    for line in PROJECT["optional-dependencies"]["dev"]:
        assert parse_name(line) in section or parse_name(line) in extras, line


@pytest.mark.parametrize("name", [parse_name(line) for line in PROJECT["dependencies"]])
def test_no_required_package_is_copyleft(name):
    fields = metadata(name)
    licenses = [fields.get("License-Expression") or "", *(fields.get_all("Classifier") or [])]
    text = " ".join(licenses)
    assert not re.search(r"\bA?GPL|General Public License", text), text


def test_every_package_is_pinned_in_the_constraints():
    pinned = {
        line.partition("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert {parse_name(line).lower() for line in lines} <= pinned


def test_all_are_the_extras_without_frameworks_of_others_and_without_the_gpl():
    (line,) = PROJECT["optional-dependencies"]["all"]
    name, _, extras = line.rstrip("]").partition("[")
    assert name == PROJECT["name"]
    left_out = {"haystack", "langchain", "llama-index", "songs", "sweep"}
    assert set(extras.split(",")) == set(EXTRAS) - left_out


def test_the_development_extra_has_every_package_of_all():
    developers = {parse_name(line) for line in PROJECT["optional-dependencies"]["dev"]}
    (line,) = PROJECT["optional-dependencies"]["all"]
    for extra in line.rstrip("]").partition("[")[2].split(","):
        assert {parse_name(package) for package in EXTRAS[extra]} <= developers, extra

"""Every line of docs/threat-model.md names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "threat-model.md"
TEST_ID = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def list_lines(text):
    """The lines of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("| attack |", "|---"))]


@cache
def list_tests(path):
    """Names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def find_problems(line):
    """What is wrong with a line: no test, a test that does not exist, or a cell that is empty."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if len(cells) != 3 or not all(cells):
        return [f"three cells are needed: {line}"]
    tests = TEST_ID.findall(cells[-1])
    # every name in the last cell must be the id of a test
    if not tests or TEST_ID.sub("", cells[-1]).strip(", "):
        return [f"the last cell must be ids of tests: {cells[-1]}"]
    return [
        f"{path} has no {name}"
        for path, name in tests
        if not (ROOT / path).is_file() or name not in list_tests(path)
    ]


def test_every_line_names_tests_that_exist():
    lines = list_lines(PAGE.read_text(encoding="utf-8"))
    assert len(lines) >= 40
    assert [problem for line in lines for problem in find_problems(line)] == []


def test_every_attacker_has_a_table():
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    without_table = [
        section.splitlines()[0] for section in sections if not list_lines("\n" + section)
    ]
    assert without_table == ["Not defended"]


@pytest.mark.parametrize(
    "line",
    [
        "| an attack | a defence | |",
        "| an attack | a defence | by hand |",
        "| an attack | a defence | `tests/board/test_token.py::test_that_is_not_there` |",
        "| an attack | a defence | `tests/board/test_nothing.py::test_websockets_are_refused` |",
        "| an attack | a defence | `tests/board/test_token.py::test_websockets_are_refused`, soon |",
        "| an attack | `tests/board/test_token.py::test_websockets_are_refused` |",
    ],
)
def test_a_line_without_a_test_is_noticed(line):
    assert find_problems(line)

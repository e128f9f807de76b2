"""The pages for contributors name files, tests and commands that exist."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.test_links import find_broken_links

ROOT = Path(__file__).parents[2]
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
PATH = re.compile(r"\b(?:src|tests|docs|benchmarks|examples|release|web)/[\w./-]*[\w/]")
PLACEHOLDER = re.compile(r"NAME|CLASS|\bOLD/")
TEST_ID = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_and_headings(name):
    path = ROOT / name
    assert find_broken_links(path, path.read_text(encoding="utf-8"), {}) == []


def find_missing_paths(text):
    """Paths of the repository that a text names and that do not exist."""
    text = re.sub(r"kindling/[\w./-]+", "", text)  # written by the command before it
    paths = [path for path in PATH.findall(text) if not PLACEHOLDER.search(path)]
    return [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name):
    assert find_missing_paths((ROOT / name).read_text(encoding="utf-8")) == []


def test_a_missing_path_is_noticed():
    assert find_missing_paths("see `src/neural/no_such.py`") == ["src/neural/no_such.py"]


def test_tests_named_by_their_id_exist():
    ids = TEST_ID.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert ids
    for path, name in ids:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_commands_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    verbs = set(re.findall(r"(?:bin/|-m )neural (\w+)", text))
    assert len(verbs) >= 4
    assert [verb for verb in verbs if CliRunner().invoke(main, [verb, "--help"]).exit_code] == []


def test_the_supported_version_is_the_current_one():
    from neural import __version__

    minor = __version__.rpartition(".")[0]
    assert f"now {minor} |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")

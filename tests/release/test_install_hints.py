"""Every install command names this distribution, `neural-lab`, and an extra that exists.

`neural` on the package index is another project.
"""

import re
import tomllib
from pathlib import Path

import pytest

from neural.core.distribution import DISTRIBUTION_NAME, format_install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
FOLDERS = ("src", "docs", "examples", "editors", "benchmarks", "release", ".github", "web/src")
SUFFIXES = {
    ".py",
    ".md",
    ".txt",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".js",
    ".ts",
    ".tsx",
    ".neural",
}
INSTALLERS = re.compile(
    r"(?:pip3?|pipx|uv(?: pip| tool)?) (?:install|add|run)\b([^\n`|#;&]*)|\buvx\b([^\n`|#;&]*)"
)
"""An install command; the group is its arguments, up to the end of the line or of the code."""
WRONG_NAME = re.compile(r"(?<![\w./\\-])neural(?![\w./-])")
"""`neural` as the name of a distribution, with or without an extra; not a path, not `neural-lab`."""
EXTRA = re.compile(rf"{DISTRIBUTION_NAME}\[([^\]]*)\]")
EXTRA_IN_CODE = re.compile(
    r"""(?:format_install_command\(|\bextra=)["'](?!forbid|ignore)([\w-]+)["']"""
)
"""An extra that code passes to the functions that write install commands; pydantic has another `extra`."""
PLACEHOLDER = re.compile(r"[{§<]")
"""Beginning of a name that the program fills in."""


def list_files():
    """Files whose text a user may read, without pages and bundles that programs make."""
    files = [
        path for path in ROOT.glob("*") if path.suffix in SUFFIXES or path.name == "Dockerfile"
    ]
    for folder in FOLDERS:
        files += [
            path
            for path in (ROOT / folder).rglob("*")
            if path.suffix in SUFFIXES and path.parent.name != "bundle"
        ]
    return sorted(path for path in files if path.name != "CHANGELOG.md")


def find_errors(text):
    """Install commands with the other project's name, and extras that do not exist."""
    errors = [
        f"other project: {match[0].strip()}"
        for match in INSTALLERS.finditer(text)
        if WRONG_NAME.search(match[1] or match[2] or "")
    ]
    for extras in EXTRA.findall(text) + EXTRA_IN_CODE.findall(text):
        if not PLACEHOLDER.match(extras):
            missing = {extra.strip() for extra in extras.split(",")} - EXTRAS
            errors += [f"no extra: {extra}" for extra in sorted(missing)]
    return errors


def test_every_install_command_names_this_distribution_and_an_extra_of_it():
    files = list_files()
    errors = {
        str(path.relative_to(ROOT)): messages
        for path in files
        if (messages := find_errors(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert errors == {}
    assert len(files) > 500  # a folder that was renamed would be left out silently


@pytest.mark.parametrize(
    "line",
    [
        "pip install neural",
        "pip install 'neural[lsp]'",
        'python -m pip install --upgrade "neural[lsp]"',
        "uv pip install torch neural",
        "pipx install neural",
        "uvx neural",
        'pip install "neural-lab[no-such-extra]"',
        'pip install "neural-lab[lsp,no-such-extra]"',
        'raise NeuralError(format_install_command("no-such-extra"))',
        'import_optional("pandas", feature="tables", extra="no-such-extra")',
        r"It needs `pip install \"neural[lsp]\"`.",
    ],
)
def test_a_wrong_command_is_found(line):
    assert find_errors(f"Then run {line}\n")


@pytest.mark.parametrize(
    "line",
    [
        'pip install "neural-lab[notebook,lsp]"',
        "pip install neural-lab",
        "`pip install .` installs the command `neural`",
        'pip install -e ".[dev]"           # registers attention="fading" in neural',
        "pip install ./neural",
        "pip install pandas",
    ],
)
def test_a_correct_command_is_accepted(line):
    assert find_errors(line) == []


def test_the_name_in_messages_is_that_of_the_project():
    assert PROJECT["name"] == DISTRIBUTION_NAME
    assert format_install_command("lsp") == 'pip install "neural-lab[lsp]"'


def test_messages_take_the_name_from_one_module():
    """Python code writes no install command of this distribution by hand."""
    by_hand = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if re.search(rf"install [^\n]*{DISTRIBUTION_NAME}", path.read_text(encoding="utf-8"))
    ]
    assert by_hand == []

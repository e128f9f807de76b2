"""docs/your-own-attention.md: its commands, from `neural new` to a trained run, in a new project.

The project is put on the path with its entry points, as `pip install -e .` would do; nothing is
installed.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.forked_commands import ForkedCommands

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/your-own-attention.md").read_text()
FIRST_BLOCK = re.search(r"```console\n(.*?)```", PAGE, re.S)[1]
COMMANDS = [
    line.partition("  #")[0].removeprefix("$ ").strip() for line in FIRST_BLOCK.splitlines()
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that `neural new` created; returns a function that runs commands in it."""
    folder = tmp_path_factory.mktemp("project")
    subprocess.run([sys.executable, "-m", "neural", "new", "kindling"], cwd=folder, check=True)
    path = folder / "kindling"
    metadata = tomllib.loads((path / "pyproject.toml").read_text())["project"]
    info = folder / "site/kindling-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kindling\nVersion: 0.1.0\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())])
        for group, entries in metadata["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    paths = [str(folder / "site"), str(path / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with ForkedCommands(environment) as commands:

        def run(*words: str) -> str:
            done = commands.run(*words, cwd=path)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run.path = path
        yield run


def test_the_page_has_the_commands_that_are_run_here():
    assert COMMANDS == [
        "neural new kindling",
        "cd kindling",
        'pip install -e ".[dev]"',
        "neural check kindling.neural",
        "pytest",
        "neural train experiment.yaml",
    ]


def test_the_program_is_checked_with_the_new_mechanism(project):
    assert 'attention="fading"' in project("neural", "check", "kindling.neural")


def test_the_contract_has_as_many_checks_as_the_page_says(project):
    shown = re.search(r"pytest +# (\d+) checks", FIRST_BLOCK)[1]
    printed = project("pytest", "-q", "-p", "no:cacheprovider")
    assert f"{shown} passed" in printed


def test_the_project_is_trained_and_compiled(project):
    overrides = ["--set", "training.steps=2", "--set", "tracking.track_every=1"]
    project("neural", "train", "experiment.yaml", *overrides)
    program = project("neural", "compile", "kindling.neural")
    assert "class Fading" in program + "".join(
        path.read_text() for path in project.path.glob("*.py")
    )


def test_blocks_of_the_page_are_those_of_the_project(project):
    python, toml = (
        re.search(rf"```{language}\n(.*?)```", PAGE, re.S)[1] for language in ("python", "toml")
    )
    assert python in (project.path / "tests/test_contract.py").read_text()
    assert toml in (project.path / "pyproject.toml").read_text()

"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {path.name: path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
COMMANDS = sorted(set(re.findall(r"`neural ([^`…]+)`", README)))
UNFINISHED = sorted(set(re.findall(r"`neural (\w+)[^`]*…", README)))
"""Verbs that want a run or a file of yours; tests/cli runs each of them on one."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("verb", UNFINISHED)
def test_a_verb_that_wants_something_of_yours_shows_how_it_is_typed(verb):
    done = CliRunner().invoke(main, [verb, "--help"])
    assert done.exit_code == 0
    assert f"$ neural {verb} " in done.output


def test_there_are_commands_to_run():
    assert len(COMMANDS) >= 5


def test_it_is_read_in_one_go():
    assert len(README.splitlines()) <= 150


def test_the_table_in_the_readme_is_the_one_that_check_prints(monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = re.search(r"\$ neural (check \S+)\n(.*?)```", README, re.S)
    printed = CliRunner().invoke(main, shown[1].split()).stdout
    assert shown[2].strip() == printed.strip()


def test_the_program_in_the_readme_is_the_example():
    body = (ROOT / "examples/tiny.neural").read_text()
    assert body[body.index("network Tiny") :] in README


def test_the_message_in_the_readme_is_the_real_one():
    message = re.search(r"```\n(error\[E0203\].*?)```", README, re.S)[1]
    line = re.search(r" 5 \| (.*)", message)[1]
    text = f"network Bert {{\n  input: (128, 512)\n  layers:\n\n{line}\n}}\n"
    done = CliRunner().invoke(main, ["check", "-"], input=text)
    assert message.replace("bert.neural", "<stdin>").strip() in done.output


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    home = next(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.name == page).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGES[page]):
        if not target.startswith(("http", "reference/")):   # those are made when the site is: tests/test_docs_site.py
            assert (home / target).exists(), target

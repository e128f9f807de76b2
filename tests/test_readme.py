"""The commands and outputs of the README are correct; tests/test_links.py checks its links."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"`neural ([^`…]+)`", README)))
COMMANDS_WITH_PLACEHOLDER = sorted(set(re.findall(r"`neural (\w+)[^`]*…", README)))
"""Commands that need a file or a run of the reader; tests/cli runs each of them."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("verb", COMMANDS_WITH_PLACEHOLDER)
def test_help_of_a_command_with_a_placeholder_has_an_example(verb):
    done = CliRunner().invoke(main, [verb, "--help"])
    assert done.exit_code == 0
    assert f"$ neural {verb} " in done.output


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 5


def test_lines_have_at_most_120_characters():
    assert max(map(len, README.splitlines())) <= 120


def test_the_table_in_the_readme_is_the_output_of_check(monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = re.search(r"\$ neural (check \S+)\n(.*?)```", README, re.S)
    printed = CliRunner().invoke(main, shown[1].split()).stdout
    assert shown[2].strip() == printed.strip()


def test_the_program_in_the_readme_is_the_example():
    body = (ROOT / "examples/tiny.neural").read_text()
    assert body[body.index("network Tiny") :] in README


def test_the_error_in_the_readme_is_the_output_of_check():
    message = re.search(r"```\n(error\[E0203\].*?)```", README, re.S)[1]
    line = re.search(r" 5 \| (.*)", message)[1]
    text = f"network Bert {{\n  input: (128, 512)\n  layers:\n\n{line}\n}}\n"
    done = CliRunner().invoke(main, ["check", "-"], input=text)
    assert message.replace("bert.neural", "<stdin>").strip() in done.output

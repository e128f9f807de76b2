"""Every command on simulated systems, and with a read-only home and current folder."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from neural.cli.main import main
from tests.platforms import every_command
from tests.platforms.every_command import NOT_CALLED, list_commands, write_files
from tests.platforms.simulation import run_python
from tests.platforms.test_read_only_folders import run_commands


def test_every_command_is_called_or_has_a_reason():
    called = {words[0] for words in list_commands(".")}
    assert called | set(NOT_CALLED) == set(main.list_commands(click.Context(main)))
    assert not called & set(NOT_CALLED)


@pytest.mark.skipif(sys.platform != "linux", reason="the simulations need Linux")
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_every_command_succeeds_in_a_folder_with_spaces_and_umlauts(system, tmp_path):
    folder = tmp_path / "Größe 1 – naïve"
    folder.mkdir()
    write_files(folder)
    script = Path(every_command.__file__)
    output = run_python(system, script, folder=folder, HOME=str(folder), LOCALAPPDATA="cache")
    lines = [line for line in output.splitlines() if line.startswith("exit ")]
    assert len(lines) == len(list_commands("."))
    assert [line for line in lines if not line.startswith("exit 0:")] == []


def test_a_read_only_home_and_current_folder_are_no_hindrance_to_any_command(tmp_path):
    home, work, output = tmp_path / "home", tmp_path / "work", tmp_path / "output"
    for folder in (home, work, output):
        folder.mkdir()
    write_files(work)
    commands = list_commands(str(output))
    codes, errors = run_commands(work, [home, work], *commands, HOME=str(home))
    failed = [words for words, code in zip(commands, codes, strict=True) if code]
    assert failed == [["doctor"]], errors  # it reports the folder
    assert list(home.iterdir()) == []


def test_a_command_that_must_write_to_a_read_only_folder_says_so(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    write_files(work)
    files = sorted(work.iterdir())
    commands = list_commands(str(work))
    codes, errors = run_commands(work, [home, work], *commands, HOME=str(home))
    for words, code in zip(commands, codes, strict=True):
        assert code in (0, 1, 2), words
    writing = ["compile", "train", "sweep", "segment", "import", "new"]
    refused = {words[0] for words, code in zip(commands, codes, strict=True) if code}
    assert refused.issuperset(writing)
    assert errors.count("error: ") + errors.count("Error: ") >= len(writing)
    assert sorted(work.iterdir()) == files

"""The gallery: every picture exists, is small, and comes after a command that can be run.

`make gallery` runs the commands and takes the pictures again; that takes minutes.
"""

import shlex
from pathlib import Path

import click
import pytest

from docs.gallery import FIGURES, PAGE, Command, Picture, read_steps
from neural.cli.main import main

ROOT = Path(__file__).parents[1]
MAX_TOTAL_BYTES = 1_500_000
STEPS = list(read_steps(PAGE.read_text(encoding="utf-8")))
COMMANDS = [step.text for step in STEPS if isinstance(step, Command)]
PICTURES = [step for step in STEPS if isinstance(step, Picture)]


@pytest.mark.parametrize("command", COMMANDS)
def test_options_and_files_of_every_command_exist(command):
    program, *words = shlex.split(command)
    assert all((ROOT / word).exists() for word in words if word.endswith((".yaml", ".py")))
    if program == "neural":
        verb, *arguments = words
        with click.Context(main) as context:
            main.get_command(context, verb).make_context(verb, arguments, parent=context)


def test_pictures_of_the_page_are_the_files_of_the_folder():
    assert {picture.path for picture in PICTURES} == set(FIGURES.iterdir())
    assert len(PICTURES) == len({picture.path for picture in PICTURES})


def test_pictures_are_small():
    assert sum(picture.path.stat().st_size for picture in PICTURES) < MAX_TOTAL_BYTES


def test_what_a_picture_shows_is_written_by_a_command_before_it():
    words: set[str] = set()
    for step in STEPS:
        if isinstance(step, Command):
            words |= set(shlex.split(step.text))
        elif step.source.startswith("#"):
            assert "board" in words, step
        else:
            assert step.source.partition("#")[0].partition("/")[0] in words, step


def test_a_page_is_read_as_commands_and_pictures():
    text = """
```console
$ neural figure mine -o heads.svg
```

![heads](figures/heads.svg)

Open `mine.html#/curves` (900 × 500):

![curves](figures/curves.png)
"""
    command, file, view = read_steps(text)
    assert command == Command("neural figure mine -o heads.svg")
    assert (file.path.name, file.source) == ("heads.svg", "heads.svg")
    assert (view.source, view.size) == ("mine.html#/curves", (900, 500))

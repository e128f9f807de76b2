"""Commands, files and modules that the documentation mentions exist.

tests/test_doc_samples.py runs complete examples; here, every other mention is parsed.
"""

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

import neural
from neural.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
OLD_PAGES = {"CHANGELOG.md", "docs/log.md"}
"""Pages about earlier versions, whose commands may be gone."""
CODE_BLOCK = re.compile(r"^```\w*.*?\n(.*?)^```|^((?: {4}.*\n)+)", re.M | re.S)
INLINE_CODE = re.compile(r"`(neural [^`\n]+)`")
FENCE = re.compile(r"^(```+).*?^\1\s*$", re.M | re.S)
REPOSITORY_PATH = re.compile(
    r"(?:src/neural|tests|benchmarks|examples|docs|web|editors|release|\.github)/[\w./*-]+"
)
MODULE = re.compile(r"neural(?:\.[a-z_]\w*)+(?:\.[A-Za-z_]\w*)*")
COMMAND = re.compile(r"^\s*\$?\s*neural (?!:)(.+)$", re.M)
SHELL_REST = re.compile(r"\s{2,}.*|\s#.*|\s(?:&&|\||>|;).*")
"""A comment, or what follows the command on its line."""


def get_page_id(page: Path) -> str:
    """Path of a page in the repository."""
    return str(page.relative_to(ROOT))


CURRENT_PAGES = [page for page in PAGES if get_page_id(page) not in OLD_PAGES]


def find_commands(text: str) -> list[str]:
    """Arguments of all calls of `neural` in code blocks and in inline code."""
    blocks = [fenced or indented for fenced, indented in CODE_BLOCK.findall(text)]
    inline = INLINE_CODE.findall(CODE_BLOCK.sub("", text))
    commands = [line for block in [*blocks, *inline] for line in COMMAND.findall(block)]
    return [SHELL_REST.sub("", command) for command in commands]


def parse_command(command: str) -> None:
    """UsageError if there is no such command, or if it has no such option."""
    verb, *words = shlex.split(re.sub(r"[\[\]]", "", command))
    if verb.startswith("-"):  # options of `neural` itself
        verb, words = "", [verb, *words]
    if not re.fullmatch(r"[a-z]*", verb):  # a placeholder: `neural VERB --help`
        return
    context = click.Context(main, info_name="neural")
    selected = main.get_command(context, verb) if verb else main
    if selected is None:
        raise click.UsageError(f"no such command: {verb}")
    # no values are converted: the files of the documentation do not exist
    own_context = click.Context(selected, parent=context, **selected.context_settings)
    selected.make_parser(own_context).parse_args(words)


@pytest.mark.parametrize("page", CURRENT_PAGES, ids=get_page_id)
def test_commands_and_options_of_a_page_exist(page):
    errors = []
    for command in find_commands(page.read_text(encoding="utf-8")):
        try:
            parse_command(command)
        except (click.UsageError, ValueError) as error:
            errors.append(f"neural {command}: {error}")
    assert errors == []


@pytest.mark.parametrize("page", CURRENT_PAGES, ids=get_page_id)
def test_files_and_modules_of_a_page_exist(page):
    names = re.findall(r"`([^`\s]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    paths = [name for name in names if REPOSITORY_PATH.fullmatch(name) and "NAME" not in name]
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []
    modules = [name for name in names if MODULE.fullmatch(name)]
    assert [module for module in modules if not is_importable(module)] == []


def is_importable(name: str) -> bool:
    """Whether a dotted name is a module, or something in a module."""
    value, path = neural, "neural"
    for part in name.split(".")[1:]:
        path += f".{part}"
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = import_module(path)
        except ModuleNotFoundError as error:
            # a module that exists, of a library that is not installed
            return not str(error.name).startswith("neural")
    return True


def test_wrong_commands_and_options_are_found():
    text = """`neural chekc net.neural`, `neural train … --sede 3` and `neural VERB --help`

```console
$ neural report RUN --pdf   # fine
$ neural report RUN --dpf
```

    neural export RUN --to onnx|torch [-o PATH]
    neural exprot RUN
"""
    commands = find_commands(text)
    assert len(commands) == 7
    wrong = []
    for command in commands:
        try:
            parse_command(command)
        except click.UsageError:
            wrong.append(command)
    assert wrong == ["report RUN --dpf", "exprot RUN", "chekc net.neural", "train … --sede 3"]

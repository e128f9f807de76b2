"""Reading programs for the commands: a missing file is a message, not a traceback."""

from __future__ import annotations

import sys

import click

from neural.blueprint import read
from neural.cli._mistakes import Refused
from neural.core.diagnostics import Diagnostic, Source, render


def source_of(path: str) -> Source:
    """The text of a file; `-` is standard input."""
    if path == "-":
        return Source("<stdin>", sys.stdin.read())
    try:
        return read(path)
    except OSError as error:
        raise Refused(f"{path}: {(error.strerror or str(error)).lower()}") from None


def say(diagnostics: tuple[Diagnostic, ...], source: Source) -> None:
    """Print diagnostics to standard error, coloured where it is a terminal, and how many there were."""
    for one in diagnostics:
        click.echo(render(one, source, click.style), err=True)
    mistakes = sum(one.severity == "error" for one in diagnostics)
    if mistakes:
        codes = sorted({one.code for one in diagnostics if one.severity == "error"})
        many = "mistake" if mistakes == 1 else "mistakes"
        click.echo(f"{source.name}: {mistakes} {many}; `neural explain {codes[0]}` says more", err=True)

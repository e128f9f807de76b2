"""Reading programs (`.neural` files) and printing their diagnostics, for check, compile and fmt.

A diagnostic is an error, a warning or a note with a code, such as E0203, and a position.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from neural.cli._formatting import format_count
from neural.core.diagnostics import Diagnostic, SourceText, render_diagnostic
from neural.core.errors import NeuralError, describe_os_error
from neural.core.files import read_source_text, suggest_file, write_atomically


def read_source(path: str) -> SourceText:
    """The text of a file; `-` is standard input. A missing file is a message, not a traceback."""
    if path == "-":
        # as files are read, whatever the encoding of the console
        text = sys.stdin.buffer.read().decode("utf-8", errors="replace")
        return SourceText("<stdin>", text.replace("\r\n", "\n"))
    try:
        return read_source_text(path)
    except OSError as error:
        suggestion = suggest_file(Path(path)) if isinstance(error, FileNotFoundError) else None
        hint = f"; {suggestion}" if suggestion else ""
        raise NeuralError(f"{path}: {describe_os_error(error)}{hint}") from None


def write_source(path: str, text: str) -> None:
    """Replace the text of a file; its line ends stay, and a symbolic link stays one.

    A read-only file is a message.
    """
    file_path = Path(path).resolve()
    try:
        with file_path.open("rb") as file:
            if file.readline().endswith(b"\r\n"):
                text = text.replace("\n", "\r\n")
        write_atomically(file_path, text)
    except OSError as error:
        raise NeuralError(f"{path} cannot be written: {describe_os_error(error)}") from None


def print_diagnostics(diagnostics: tuple[Diagnostic, ...], source: SourceText) -> None:
    """Print diagnostics and the number of errors to standard error; in colour on a terminal."""
    for diagnostic in diagnostics:
        click.echo(render_diagnostic(diagnostic, source, click.style), err=True)
    codes = [diagnostic.code for diagnostic in diagnostics if diagnostic.severity == "error"]
    if codes:
        click.echo(
            f"{source.name}: {format_count(codes, 'error')}; "
            f"`neural explain {min(codes)}` says more",
            err=True,
        )

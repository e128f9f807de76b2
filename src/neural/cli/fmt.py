"""`neural fmt`: formatter of programs, `.neural` files that declare networks."""

from __future__ import annotations

import difflib
import sys

import click

from neural.cli._arguments import PROGRAM_OR_STDIN

ALIASES = ("format",)
"""Other names of this command."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=PROGRAM_OR_STDIN)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; exit with code 1 if a file would change.",
)
@click.option("--diff", is_flag=True, help="Write nothing; print the changes as a diff.")
def command(files: tuple[str, ...], only_check: bool, diff: bool) -> None:
    """Format programs in one style; comments stay where they are.

    \b
    $ neural fmt net.neural
    $ neural fmt --diff examples/*.neural
    $ neural fmt - < net.neural            to standard output

    A file with syntax errors is not changed: exit code 2.
    """
    from neural.cli._file_kind import require_kind
    from neural.cli._program_source import print_diagnostics, read_source, write_source
    from neural.core.diagnostics import DiagnosticCollector
    from neural.language.formatter import format_program
    from neural.language.parser import parse

    exit_code = 0
    for path in files:
        if path != "-":
            require_kind(path, "program")
        source = read_source(path)
        diagnostics = DiagnosticCollector()
        program = parse(source.text, diagnostics)
        if diagnostics.errors:
            print_diagnostics(tuple(diagnostics.items), source)
            exit_code = 2
            continue
        formatted = format_program(program)
        is_changed = formatted != source.text
        if diff and is_changed:
            lines = difflib.unified_diff(
                source.text.splitlines(keepends=True),
                formatted.splitlines(keepends=True),
                source.name,
                f"{source.name} (formatted)",
            )
            click.echo("".join(lines), nl=False)
        if path == "-" and not (only_check or diff):
            click.echo(formatted, nl=False)
        elif is_changed and (only_check or diff):
            click.echo(f"{source.name}: would change", err=True)
            exit_code = max(exit_code, 1 if only_check else 0)
        elif is_changed:
            write_source(path, formatted)
            click.echo(f"{source.name}: formatted", err=True)
    sys.exit(exit_code)

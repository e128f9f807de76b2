"""`neural fmt`: one style for all programs."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import click

from neural.cli._arguments import PROGRAM


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=PROGRAM)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 where a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(files: tuple[str, ...], only_check: bool, diff: bool) -> None:
    """Lay programs out in one style; comments stay where they are.

    \b
    $ neural fmt net.neural
    $ neural fmt --diff examples/*.neural
    $ neural fmt - < net.neural            to standard output

    A file with syntax mistakes is left alone: exit code 2.
    """
    from neural.cli._files import say, source_of
    from neural.cli._kinds import expect
    from neural.core.diagnostics import Findings
    from neural.core.files import write_atomically
    from neural.language.parser import parse
    from neural.language.printer import print_program

    worst = 0
    for path in files:
        if path != "-":
            expect(path, "program")
        source = source_of(path)
        findings = Findings()
        program = parse(source.text, findings)
        if findings.mistakes:
            say(tuple(findings.items), source)
            worst = 2
            continue
        printed = print_program(program)
        changed = printed != source.text
        if diff and changed:
            old, new = source.text.splitlines(keepends=True), printed.splitlines(keepends=True)
            lines = difflib.unified_diff(old, new, source.name, f"{source.name} (formatted)")
            click.echo("".join(lines), nl=False)
        if path == "-" and not (only_check or diff):
            click.echo(printed, nl=False)
        elif changed and (only_check or diff):
            click.echo(f"{source.name}: would change", err=True)
            worst = max(worst, 1 if only_check else 0)
        elif changed:
            write_atomically(Path(path).resolve(), printed)   # a link stays one
            click.echo(f"{source.name}: formatted", err=True)
    sys.exit(worst)

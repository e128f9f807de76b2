"""`neural compile`: a program as a Python file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from neural.cli._arguments import PROGRAM


@click.command()
@click.argument("file", metavar="FILE", type=PROGRAM)
@click.option("--to", "form", type=click.Choice(["pytorch", "json"]), default="pytorch", show_default=True)
@click.option("--network", metavar="NAME", help="Which network, where a file has several.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="The file to write; to standard output if not said.")  # fmt: skip
def command(file: str, form: str, network: str | None, out: Path | None) -> None:
    """Write a network as a Python file that needs torch alone.

    \b
    $ neural compile net.neural -o net.py
    $ python net.py

    It loads the state dict of the module that `neural.load("net.neural").build()` makes. What was written is imported,
    run and compared with the network before it is put in place.
    """
    import json

    from neural.cli._files import say, source_of
    from neural.cli._kinds import expect
    from neural.cli._mistakes import Refused
    from neural.core.files import write_atomically
    from neural.language.check import check
    from neural.language.interchange import to_json
    from neural.standard import CATALOGUE

    if file != "-":
        expect(file, "program")
    source = source_of(file)
    checked = check(source.text, CATALOGUE, network=network)
    if checked.mistakes:
        say(checked.mistakes, source)
        sys.exit(2)
    summary = ""
    if form == "json":
        text = json.dumps(to_json(checked.program), indent=2, ensure_ascii=False) + "\n"
    else:
        from neural.compiling import compile_network  # brings torch in
        from neural.modules.source.symbols import CannotCompile

        try:
            done = compile_network(checked.networks[0])
        except (CannotCompile, MemoryError) as problem:
            raise Refused(f"{problem}; nothing was written") from None
        text, at = done.text, ", ".join(str(shape) for shape in done.shapes)
        if done.difference is None:
            summary = f"the network's shapes at {at}; it is too large to compare numbers"
        else:
            summary = f"equal to the network at {at}: the largest difference is {done.difference:.1g}"
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(out, text)
    except OSError as error:
        raise Refused(f"{out}: {(error.strerror or str(error)).lower()}") from None
    network_made = checked.networks[0]
    click.echo(f"{out}: {network_made.name}, {network_made.cost.parameters:,} parameters", err=True)
    if summary:
        click.echo(summary, err=True)

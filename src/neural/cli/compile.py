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
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file to write.")
def command(file: str, form: str, network: str | None, output: Path | None) -> None:
    """Write a network as a Python file that needs torch alone.

    \b
    $ neural compile net.neural -o net.py
    $ python net.py

    It loads the state dict of the module that `neural.load("net.neural").build()` makes.
    """
    import json

    from neural.cli._files import say, source_of
    from neural.core.files import write_atomically
    from neural.language.check import check
    from neural.language.interchange import to_json
    from neural.standard import CATALOGUE

    source = source_of(file)
    checked = check(source.text, CATALOGUE, network=network)
    if checked.mistakes:
        say(checked.mistakes, source)
        sys.exit(2)
    if form == "json":
        text = json.dumps(to_json(checked.program), indent=2, ensure_ascii=False) + "\n"
    else:
        from neural.modules.export import to_pytorch  # brings torch in

        text = to_pytorch(checked.networks[0])
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(output, text)
    except OSError as error:
        raise click.ClickException(f"{output}: {(error.strerror or str(error)).lower()}") from error
    click.echo(f"{output}: {checked.networks[0].name}, {checked.networks[0].cost.parameters:,} parameters", err=True)

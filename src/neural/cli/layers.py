"""`neural layers`: what a program can be made of."""

from __future__ import annotations

import click

from neural.cli._arguments import ENTRY


@click.command()
@click.argument("name", required=False, type=ENTRY)
def command(name: str | None) -> None:
    """List the layers, or show one with its arguments and an example.

    \b
    $ neural layers
    $ neural layers TransformerEncoder
    $ neural layers localized              mechanisms, positions, losses and optimizers too
    """
    from neural.cli._catalogue import describe, listing

    click.echo(describe(name) if name else listing())

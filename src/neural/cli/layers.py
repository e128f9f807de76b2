"""`neural layers`: list of layers, attention mechanisms, positions, losses and optimizers."""

from __future__ import annotations

import click

from neural.cli._arguments import ENTRY


@click.command()
@click.argument("name", required=False, type=ENTRY)
def command(name: str | None) -> None:
    """List layers, mechanisms and optimizers; or describe one, with an example.

    \b
    $ neural layers
    $ neural layers TransformerEncoder
    $ neural layers localized              mechanisms, positions, losses and optimizers too
    """
    from neural.cli._catalogue import describe_entry, format_listing

    click.echo(describe_entry(name) if name else format_listing())

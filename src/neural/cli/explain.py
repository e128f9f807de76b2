"""`neural explain`: more about a code."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import CODE

if TYPE_CHECKING:
    from neural.core.diagnostics import Diagnostic, Source
    from neural.language.codes import Example

SETTINGS = "E08"
"""Codes about experiment files, whose examples are YAML."""


@click.command()
@click.argument("code", required=False, type=CODE)
def command(code: str | None) -> None:
    """Explain a code such as E0203, or list them all.

    \b
    $ neural explain E0203
    $ neural explain

    E are mistakes, W warnings, N notes. The message shown is made by the checker while you look.
    """
    from neural.cli._mistakes import Refused
    from neural.core.diagnostics import render
    from neural.core.registry import UnknownName
    from neural.language import codes

    if code is None:
        for name in codes.names():
            click.echo(f"{click.style(name, bold=True)}  {codes.get(name).title}")
        return
    try:
        found = codes.get(code)
    except UnknownName as unknown:
        raise Refused(f"{unknown}; `neural explain` lists all") from None
    click.echo(click.style(f"{found.code}: {found.title}", bold=True) + "\n")
    click.echo(textwrap.fill(found.cause, 100))
    if found.wrong is not None:
        source, diagnostics = diagnosed(found.code, found.wrong)
        click.echo("\n" + click.style("like this:", bold=True) + "\n")
        click.echo(textwrap.indent(found.wrong.text, "    "))
        for one in diagnostics:
            if one.code == found.code:
                click.echo(textwrap.indent(render(one, source, click.style), "    "))
    with_name = f" (with --network {found.right.network})" if found.right.network else ""
    click.echo("\n" + click.style(f"better{with_name}:", bold=True) + "\n")
    click.echo(textwrap.indent(found.right.text, "    ").rstrip())


def diagnosed(code: str, example: Example) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The example, and what is said of it by whoever reads such texts."""
    from neural.core.diagnostics import Source

    if code.startswith(SETTINGS):
        from neural.core.settings import SettingsError, read_settings
        from neural.tasks.experiment import Experiment

        source = Source("experiment.yaml", example.text)
        try:
            read_settings(Experiment, source)
        except SettingsError as error:
            return source, error.diagnostics
        return source, ()
    from neural.language.check import check
    from neural.standard import CATALOGUE

    source = Source("net.neural", example.text)
    return source, check(source.text, CATALOGUE, network=example.network).diagnostics

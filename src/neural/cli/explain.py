"""`neural explain`: more about a code."""

from __future__ import annotations

import textwrap

import click


@click.command()
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a code such as E0203, or list them all.

    \b
    $ neural explain E0203
    $ neural explain

    E are mistakes, W warnings, N notes. The message shown is made by the checker while you look.
    """
    from neural.cli._files import Unreadable
    from neural.core.diagnostics import Source, render
    from neural.core.registry import UnknownName
    from neural.language import codes
    from neural.language.check import check
    from neural.standard import CATALOGUE

    if code is None:
        for name in codes.names():
            click.echo(f"{click.style(name, bold=True)}  {codes.get(name).title}")
        return
    try:
        found = codes.get(code)
    except UnknownName as unknown:
        raise Unreadable(f"{unknown}; `neural explain` lists all") from None
    click.echo(click.style(f"{found.code}: {found.title}", bold=True) + "\n")
    click.echo(textwrap.fill(found.cause, 100))
    if found.wrong is not None:
        source = Source("net.neural", found.wrong.text)
        checked = check(source.text, CATALOGUE, network=found.wrong.network)
        click.echo("\n" + click.style("like this:", bold=True) + "\n")
        click.echo(textwrap.indent(found.wrong.text, "    "))
        for one in checked.diagnostics:
            if one.code == found.code:
                click.echo(textwrap.indent(render(one, source, click.style), "    "))
    with_name = f" (with --network {found.right.network})" if found.right.network else ""
    click.echo("\n" + click.style(f"better{with_name}:", bold=True) + "\n")
    click.echo(textwrap.indent(found.right.text, "    ").rstrip())

"""`neural lsp`: what editors ask about programs, answered."""

from __future__ import annotations

from importlib.util import find_spec

import click


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output; so it is anyway.")
@click.option("--tcp", type=click.IntRange(1, 65535), metavar="PORT", help="Listen on this machine's port instead.")
def command(stdio: bool, tcp: int | None) -> None:
    """The language server: mistakes while you type, hover, completion, formatting, quick fixes.

    \b
    $ neural lsp                 editors start this; docs/editors.md says how
    $ neural lsp --tcp 2087      to look at what is said

    For .neural programs, and for experiments in YAML what is wrong with their settings.
    """
    from neural.cli._mistakes import Refused

    if stdio and tcp:
        raise click.UsageError("--stdio and --tcp exclude each other")
    if find_spec("pygls") is None:
        raise Refused('the language server needs one more package: pip install "neural[lsp]"')
    from neural.lsp.server import server

    if tcp is None:
        server.start_io()
        return
    click.echo(f"listening on 127.0.0.1:{tcp}; Ctrl-C ends it", err=True)
    try:
        server.start_tcp("127.0.0.1", tcp)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise Refused(f"127.0.0.1:{tcp} cannot be listened at: {why}; --tcp takes another") from None

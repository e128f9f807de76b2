"""`neural lsp`: language server (LSP) for editors, implemented in neural.lsp."""

from __future__ import annotations

from importlib.util import find_spec

import click


@click.command()
@click.option(
    "--stdio", is_flag=True, help="Communicate over standard input and output; the default."
)
@click.option(
    "--tcp",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Listen on this port of the local machine instead.",
)
def command(stdio: bool, tcp: int | None) -> None:
    """Run the language server: errors while you type, hover, completion, formatting, quick fixes.

    \b
    $ neural lsp                 editors start this; docs/editors.md says how
    $ neural lsp --tcp 2087      to inspect the messages

    Supports .neural programs; of experiments in YAML it reports errors in the settings.
    """
    from neural.core.distribution import format_install_command
    from neural.core.errors import NeuralError, describe_os_error

    if stdio and tcp:
        raise click.UsageError("--stdio and --tcp exclude each other")
    if find_spec("pygls") is None:
        raise NeuralError(
            f"the language server needs one more package: {format_install_command('lsp')}"
        )
    from neural.lsp.server import server

    if tcp is None:
        server.start_io()
        return
    click.echo(f"listening on 127.0.0.1:{tcp}; Ctrl-C ends it", err=True)
    try:
        server.start_tcp("127.0.0.1", tcp)
    except OSError as error:
        raise NeuralError(
            f"cannot listen on 127.0.0.1:{tcp}: {describe_os_error(error)}; choose another --tcp"
        ) from None

"""`neural board`: serve the live web page of a folder of runs (neural.board)."""

from __future__ import annotations

from pathlib import Path

import click

from neural.cli._options import runs_option

DEFAULT_PORT = 8765
TOKEN_VARIABLE = "NEURAL_BOARD_TOKEN"
"""Environment variable with a token of the user's choice.

There is no option for it: every user of a machine can read the command lines of all processes, but
only the owner their environments.
"""
NICENESS = 5
"""Added to the process's niceness, so that training comes first."""
HEAPS = 2
"""Heaps of memory for all threads; with one per thread, the board's memory keeps growing."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[RUNS]", required=False)
@runs_option()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on, for access from other machines.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Let every user of this machine use the board; not together with --host.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def command(
    folder: Path | None, root: Path, port: int, host: str, no_token: bool, no_open: bool
) -> None:
    """Serve a live page of runs: curves, attention step by step, alarms; compare and generate too.

    \b
    $ neural board
    $ neural board runs/2026-11-16_01-50-12_rates --port 9000
    $ neural board --host 0.0.0.0 --no-open      on a machine without a screen

    Only reads run folders. Ctrl-C ends the server and does not affect trainings. Open the printed
    address: it has a token, which every request needs. For a token of your own (16 or more letters
    and digits), set NEURAL_BOARD_TOKEN; it is not printed.
    """
    from neural.core.errors import NeuralError

    runs = folder or root
    if not runs.is_dir():
        hint = "; `neural train` creates it" if runs == Path("runs") else ""
        raise NeuralError(f"there is no folder {runs}{hint}")
    _serve(runs, host, port, has_token=not no_token, opens_browser=not no_open)


def _choose_token(host: str, *, has_token: bool) -> str | None:
    """The token of the environment, else a random one; None without tokens."""
    import os

    from neural.board.security import TOKEN_PATTERN, create_token, is_loopback_host
    from neural.core.errors import NeuralError

    if not has_token:
        if not is_loopback_host(host):
            raise NeuralError(
                f"--no-token needs a loopback address: other machines can connect to {host}; "
                "leave out --no-token or --host"
            )
        return None
    chosen_token = os.environ.get(TOKEN_VARIABLE)
    if chosen_token is None:
        return create_token()
    if not TOKEN_PATTERN.fullmatch(chosen_token):
        raise NeuralError(
            f"the token in {TOKEN_VARIABLE} cannot be used: it needs 16 to 256 characters, which "
            "are letters, digits, `.`, `_`, `~` or `-`"
        )
    return chosen_token


def _serve(runs: Path, host: str, port: int, *, has_token: bool, opens_browser: bool) -> None:
    """Serve until Ctrl-C; `port` 0 takes a free one."""
    import os
    from contextlib import nullcontext, suppress

    import uvicorn

    from neural.board.app import create_app
    from neural.board.launch import open_browser
    from neural.board.security import ServerConfig, is_loopback_host, open_listening_socket
    from neural.board.server import create_server_config
    from neural.core.errors import NeuralError, describe_os_error
    from neural.core.platform_support import lower_priority, share_heaps

    token = _choose_token(host, has_token=has_token)
    try:
        listener = open_listening_socket(host, port)
    except OSError as error:
        raise NeuralError(
            f"cannot listen on {host}:{port}: {describe_os_error(error)}; choose another --port"
        ) from None
    port = listener.getsockname()[1]
    server_config = ServerConfig(host, port, token)
    if token is not None and token == os.environ.get(TOKEN_VARIABLE):
        # the output may go to a log that others can read
        click.echo(f"{runs}: {server_config.address}")
        click.echo(f"add ?token= and the token in {TOKEN_VARIABLE}", err=True)
    else:
        click.echo(f"{runs}: {server_config.url}")
    if token is None:
        click.echo("every user of this machine can read the runs and use their networks", err=True)
    elif not is_loopback_host(host):
        click.echo(
            "anyone with this address can read the runs and use their networks; "
            "http is not encrypted",
            err=True,
        )
    uvicorn_config = create_server_config(create_app(runs, server_config))
    click.echo("Ctrl-C ends the board", err=True)
    # uvicorn raises KeyboardInterrupt again after the shutdown; Ctrl-C is the usual end, no error
    with (
        suppress(KeyboardInterrupt),
        open_browser(server_config.url) if opens_browser else nullcontext(),
    ):
        # after the browser has started: it would inherit the lower priority
        lower_priority(NICENESS)
        share_heaps(HEAPS)
        uvicorn.Server(uvicorn_config).run(sockets=[listener])

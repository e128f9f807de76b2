"""`neural board`: serve the live web page of a folder of runs (neural.board)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from neural.cli._options import runs_option

DEFAULT_PORT = 8765
NICENESS = 5
"""Added to the process's niceness, so that training comes first."""


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
    help="Address to listen on; if it is not a loopback address, clients need the printed token.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def command(folder: Path | None, root: Path, port: int, host: str, no_open: bool) -> None:
    """Serve a live page of runs: curves, attention step by step, alarms; compare and generate too.

    \b
    $ neural board
    $ neural board runs/2026-11-16_01-50-12_rates --port 9000
    $ neural board --host 0.0.0.0 --no-open      on a machine without a screen

    Only reads run folders. Ctrl-C ends the server and does not affect trainings.
    """
    from neural.cli._errors import UserError, report_errors

    runs = folder or root
    if not runs.is_dir():
        hint = "; `neural train` creates it" if runs == Path("runs") else ""
        raise UserError(f"there is no folder {runs}{hint}")
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise UserError('the board needs two more packages: pip install "neural[board]"')
    with report_errors():
        _serve(runs, host, port, open_browser=not no_open)


def _serve(runs: Path, host: str, port: int, *, open_browser: bool) -> None:
    """Serve until Ctrl-C; `port` 0 takes a free one."""
    import os
    import secrets
    import webbrowser
    from contextlib import suppress

    import uvicorn

    from neural.board.app import create_app
    from neural.board.security import ServerConfig, is_loopback_host, open_listening_socket
    from neural.cli._errors import UserError
    from neural.core.errors import describe_os_error

    try:
        listener = open_listening_socket(host, port)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}:{port}: {describe_os_error(error)}; choose another --port"
        ) from None
    port = listener.getsockname()[1]
    # Clients on other machines must send this secret.
    token = None if is_loopback_host(host) else secrets.token_urlsafe(24)
    server_config = ServerConfig(host, port, token)
    click.echo(f"{runs}: {server_config.url}")
    if token is not None:
        click.echo(
            "anyone with this address can read the runs and use their networks; "
            "http is not encrypted",
            err=True,
        )
    if open_browser:
        with suppress(webbrowser.Error):
            webbrowser.open(server_config.url)
    # After the browser has started: it would inherit the lower priority.
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    uvicorn_config = uvicorn.Config(
        create_app(runs, server_config),
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
        limit_concurrency=400,  # further requests get status 503
        proxy_headers=False,
        ws="none",
    )
    uvicorn.Server(uvicorn_config).run(sockets=[listener])

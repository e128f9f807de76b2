"""`neural board`: the live page of a folder of runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

PORT = 8765
GIVES_WAY = 5
"""Niceness: training comes first."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="[RUNS]", required=False)
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are, where no folder is named.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
              help="Another than this machine's own lets others in who have the token that is printed.")  # fmt: skip
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def command(folder: Path | None, runs: Path, port: int, host: str, no_open: bool) -> None:
    """Show runs while they are trained: curves, attention step by step, alarms; compare, generate, segment.

    \b
    $ neural board
    $ neural board runs/2026-11-16_01-50-12_rates --port 9000
    $ neural board --host 0.0.0.0 --no-open      on a machine without a screen

    Reads run folders and nothing else; Ctrl-C ends it, and no training with it.
    """
    from neural.cli._mistakes import Refused, told

    runs = folder or runs
    if not runs.is_dir():
        more = "; `neural train` makes it" if runs == Path("runs") else ""
        raise Refused(f"there is no folder {runs}{more}")
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise Refused('the board needs two more packages: pip install "neural[board]"')
    with told():
        _serve(runs, host, port, opens=not no_open)


def _serve(runs: Path, host: str, port: int, *, opens: bool) -> None:
    import os
    import secrets
    import webbrowser
    from contextlib import suppress

    import uvicorn

    from neural.board import application
    from neural.cli._mistakes import Refused
    from neural.views.board.guard import Door, is_own, listening

    try:
        listener = listening(host, port)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise Refused(f"{host}:{port} cannot be listened at: {why}; --port takes another") from None
    port = listener.getsockname()[1]
    door = Door(host, port, None if is_own(host) else secrets.token_urlsafe(24))
    click.echo(f"{runs}: {door.address}")
    if door.token is not None:
        click.echo("whoever has this address can read the runs and use their networks; http is not encrypted", err=True)
    if opens:
        with suppress(webbrowser.Error):
            webbrowser.open(door.address)
    with suppress(OSError, AttributeError):   # after the browser, which is not to be slow
        os.nice(GIVES_WAY)
    config = uvicorn.Config(
        application(runs, door), log_config=None, log_level="error", access_log=False, server_header=False,
        date_header=False, timeout_graceful_shutdown=1, timeout_keep_alive=60, limit_concurrency=400,
        proxy_headers=False, ws="none",
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])

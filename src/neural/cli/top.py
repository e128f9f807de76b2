"""`neural top`: a run while it is trained, in a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import RUN, Number

if TYPE_CHECKING:
    from neural.tracking.run import Run


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--measure", metavar="NAME", help="Which one the cells show; relative entropy if not said.")
@click.option("--every", type=Number(0.2), default=2.0, show_default=True, help="Seconds between two frames.")
@click.option("--once", is_flag=True, help="One frame and no more, as where there is no terminal.")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
def command(run: str | None, measure: str | None, every: float, once: bool, root: Path) -> None:
    """Watch a run: curves, measures and every head as a cell; the newest if none is named.

    \b
    $ neural top
    $ neural top Digits --measure entropy --every 5
    $ neural top --once

    Needs a terminal and nothing else, also over SSH. Ends with the run, or with Ctrl-C; the run does not notice.
    """
    from neural.cli import _top
    from neural.cli._mistakes import told

    with told():
        from neural.experiments import find_run
        from neural.tracking.run import Run

        with Run.open(find_run(run, root)) as found:
            _top.check(found, measure)
            if once or not sys.stdout.isatty():
                click.echo("\n".join(_top.frame(found, measure)))
            else:
                _follow(found, measure, every)


def _follow(run: Run, measure: str | None, every: float) -> None:
    """Frame after frame in the same place, until the run is over."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from neural.cli import _top

    def picture() -> Text:
        lines = shutil.get_terminal_size().lines
        return Text.from_ansi("\n".join(_top.frame(run, measure, lines=lines)), no_wrap=True, overflow="crop")

    with Live(picture(), console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        while run.status.state == "running":
            time.sleep(every)
            live.update(picture(), refresh=True)

"""Progress of a long command on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left on a terminal; elsewhere a line when each label begins.

    On standard error. The block gets a function of a label, what is done, and all; 0 if all is not
    known yet.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        labels = set[str]()

        def print_label(label: str, done: int, total: int) -> None:
            if label not in labels:
                labels.add(label)
                click.echo(f"{label} …", err=True)

        yield print_label
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        # a total of None is shown as `?`: it is known after the model is loaded and inspected
        bar_task = bar.add_task("loading", total=None)
        yield lambda label, done, total: bar.update(
            bar_task, description=label, completed=done, total=total or None
        )

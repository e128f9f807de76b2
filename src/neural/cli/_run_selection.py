"""Find the runs that a command line names; on a terminal, ask which of several matches is meant.

Every command that reads a run uses these functions, so a run is named the same way everywhere:
part of its name in any case, its path, or nothing for the newest one (neural.runs.find).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

MAX_CHOICES = 20
"""Newest matches that are offered."""


def select_run(name: str | None, root: Path, *, is_changed: bool = False) -> Path:
    """The folder of one run; RunError if there is none, or several and nobody can be asked.

    Of runs that differ only in their date, it is the newest, unless the command changes the run.
    """
    from neural.runs.find import find_run

    return find_run(name, root, choose=choose_on_terminal, is_changed=is_changed)


def select_run_or_sweep(name: str | None, root: Path, *, is_changed: bool = False) -> Path:
    """The folder of one run or of one sweep, a folder of runs."""
    from neural.workflows.sweep import find_run_or_sweep

    return find_run_or_sweep(name, root, choose=choose_on_terminal, is_changed=is_changed)


def select_sweep(name: str | None, root: Path) -> Path:
    """The folder of one sweep."""
    from neural.workflows.sweep import find_sweep

    return find_sweep(name, root, choose=choose_on_terminal)


def select_runs(names: Sequence[str], root: Path, *, only_finished: bool = False) -> list[Path]:
    """The folders of several runs; a sweep stands for its runs."""
    from neural.workflows.sweep import resolve_run_paths

    return resolve_run_paths(names, root, only_finished=only_finished, choose=choose_on_terminal)


def choose_on_terminal(name: str, matches: Sequence[Path]) -> Path | None:
    """Ask which folder is meant, newest first; None without a terminal.

    The question is written to standard error, so standard output can still be piped.
    """
    if not _can_ask():
        return None
    choices = list(reversed(matches))[:MAX_CHOICES]
    click.echo(f"`{name}` matches several runs:", err=True)
    for number, path in enumerate(choices, start=1):
        click.echo(f"  {number:2}  {path.name}", err=True)
    number = click.prompt(
        "which one", type=click.IntRange(1, len(choices)), default=1, show_default=True, err=True
    )
    return choices[number - 1]


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()

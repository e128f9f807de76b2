"""`neural doctor`: what this machine has, what is missing, how to get it."""

from __future__ import annotations

import json
import sys

import click

SIGNS = {"good": ("✓", "green"), "missing": ("–", "yellow"), "wrong": ("✗", "red")}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(as_json: bool) -> None:
    """Look at versions, threads, devices, disk and data; say what is missing and how to get it.

    \b
    $ neural doctor

    Exit codes: 0 ready (extras may be missing), 1 something must be mended.
    """
    from dataclasses import asdict

    from neural.doctor import advice, examined

    checks = []
    for one in examined():
        checks.append(one)
        if not as_json:
            way = f"  → {one.way}" if one.way else ""
            sign, colour = SIGNS[one.state]
            click.echo(f"{click.style(sign, fg=colour)} {one.name:14} {one.found}{way}")
    click.echo(json.dumps([asdict(one) for one in checks], indent=2) if as_json else f"\n{advice(checks)}")
    sys.exit(1 if any(one.state == "wrong" for one in checks) else 0)

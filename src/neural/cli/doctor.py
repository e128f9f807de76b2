"""`neural doctor`: check the installation and the machine."""

from __future__ import annotations

import json
import sys

import click

from neural.cli._options import json_option

STATE_SIGNS = {"good": ("✓", "green"), "missing": ("–", "yellow"), "wrong": ("✗", "red")}
"""Sign and colour by state of a check."""


@click.command()
@json_option()
def command(as_json: bool) -> None:
    """Check versions, threads, devices, disk and data; say what is missing and how to get it.

    \b
    $ neural doctor
    $ neural doctor --json | jq '.[] | select(.state != "good")'

    Exit codes: 0 ready (optional packages may be missing), 1 something must be fixed.
    """
    from dataclasses import asdict

    from neural.workflows.doctor import run_checks, summarize_checks

    checks = []
    for check in run_checks():
        checks.append(check)
        if not as_json:  # checks take a while: each is printed as soon as it is done
            sign, colour = STATE_SIGNS[check.state]
            fix = f"  → {check.fix}" if check.fix else ""
            click.echo(f"{click.style(sign, fg=colour)} {check.name:14} {check.detail}{fix}")
    click.echo(
        json.dumps([asdict(check) for check in checks], indent=2)
        if as_json
        else f"\n{summarize_checks(checks)}"
    )
    sys.exit(1 if any(check.state == "wrong" for check in checks) else 0)

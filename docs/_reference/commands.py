"""The command line: what every verb's `--help` says."""

from __future__ import annotations

import click

from neural.cli.main import main

from .pieces import fence, joined, table

WIDTH = 100
LEAD = """
What `neural VERB --help` says. A mistake in what was typed, or in a file, is a message and exit code 2, never a
traceback; 1 is a job that failed; 130 one that was stopped.
"""


def pages() -> dict[str, str]:
    """One page with all verbs."""
    top = click.Context(main, info_name="neural", max_content_width=WIDTH)
    rows, sections = [], []
    for name in main.list_commands(top):
        verb = main.get_command(top, name)
        assert verb is not None
        context = click.Context(verb, info_name=name, parent=top, max_content_width=WIDTH, terminal_width=WIDTH)
        rows.append([f"[`neural {name}`](#{name})", verb.get_short_help_str(2 * WIDTH)])
        sections.append(joined(f"## neural {name} {{ #{name} }}", fence(verb.get_help(context))))
    return {"commands": joined("# Commands", LEAD.strip(), table(["", ""], rows), *sections)}

"""Command-line reference: the `--help` text of every command."""

from __future__ import annotations

import click

from neural.cli.main import main

from .markdown import fence, join_paragraphs, table

HELP_WIDTH = 100
INTRODUCTION = """
The output of `neural VERB --help`. An error in an argument or in a file gives a message and exit
code 2, never a traceback. Exit code 1 is a job that failed, 130 one that was stopped.
"""


def pages() -> dict[str, str]:
    """One page with all commands."""
    top = click.Context(main, info_name="neural", max_content_width=HELP_WIDTH)
    rows, sections = [], []
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        assert command is not None
        context = click.Context(
            command,
            info_name=name,
            parent=top,
            max_content_width=HELP_WIDTH,
            terminal_width=HELP_WIDTH,
        )
        rows.append([f"[`neural {name}`](#{name})", command.get_short_help_str(2 * HELP_WIDTH)])
        help_text = fence(command.get_help(context))
        sections.append(join_paragraphs(f"## neural {name} {{ #{name} }}", help_text))
    overview = table(["", ""], rows)
    return {"commands": join_paragraphs("# Commands", INTRODUCTION.strip(), overview, *sections)}

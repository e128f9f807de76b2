"""Command-line reference: the `--help` text of every command."""

from __future__ import annotations

import click

from neural.cli._arguments import PROGRAM_OR_RUN, RUN, SWEEP, CompletedString
from neural.cli.main import main

from .markdown import fence, join_paragraphs, table

HELP_WIDTH = 100
INTRODUCTION = """
The output of `neural VERB --help`. An error in an argument or in a file gives a message and exit
code 2, never a traceback. Exit code 1 is a job that failed, 130 one that was stopped.
"""
COMMON_OPTIONS = """
## What all commands share { #common }

A run is named in the same way everywhere: by part of its name in any case, by its path, or not at
all, which is the newest one. If several runs match, a terminal shows a list to choose from; without
a terminal the list is an error. Where a command takes several runs, the name of a sweep stands for
its runs. `--runs FOLDER` is the folder in which runs are created and found. `--json` prints JSON on
standard output and nothing else; notes go to standard error. `-o PATH` is the file or folder to
write. `-` is standard input as an input file, and standard output after `-o`.
"""


def pages() -> dict[str, str]:
    """One page with all commands."""
    top = click.Context(main, info_name="neural", max_content_width=HELP_WIDTH)
    rows, common_rows, sections = [], [], []
    for name in main.list_commands(top):
        command = main.get_command(top, name)
        assert command is not None
        context = create_context(command, name, top)
        rows.append([f"[`neural {name}`](#{name})", command.get_short_help_str(2 * HELP_WIDTH)])
        common_rows.append([f"`neural {name}`", *list_common_options(command)])
        sections.append(join_paragraphs(f"## neural {name} {{ #{name} }}", *list_help(context)))
    overview = table(["", ""], rows)
    common_table = table(["", "a run", "`--runs`", "`--json`", "`-o`", "`-`"], common_rows)
    return {
        "commands": join_paragraphs(
            "# Commands",
            INTRODUCTION.strip(),
            overview,
            COMMON_OPTIONS.strip(),
            common_table,
            *sections,
        )
    }


def create_context(command: click.Command, name: str, parent: click.Context) -> click.Context:
    """Context in which a command formats its help."""
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        max_content_width=HELP_WIDTH,
        terminal_width=HELP_WIDTH,
    )


def list_help(context: click.Context) -> list[str]:
    """The help text of a command, and those of its subcommands."""
    command = context.command
    texts = [fence(command.get_help(context))]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            child = create_context(subcommand, name, context)
            texts.append(fence(subcommand.get_help(child)))
    return texts


def list_common_options(command: click.Command) -> list[str]:
    """Cells of the table: how a run is named, `--runs`, `--json`, `-o`, and what `-` is."""
    options = {flag: parameter for parameter in command.params for flag in parameter.opts}
    run_names = [
        f"`{parameter.make_metavar(click.Context(command))}`"
        if isinstance(parameter, click.Argument)
        else f"`{parameter.opts[0]}`"
        for parameter in command.params
        if parameter.type in (RUN, SWEEP, PROGRAM_OR_RUN)
    ]
    reads_stdin = any(
        isinstance(parameter.type, CompletedString) and parameter.type.reads_stdin
        for parameter in command.params
    )
    out = options.get("-o")
    writes_stdout = out is not None and getattr(out.type, "allow_dash", False)
    streams = ["input"] * reads_stdin + ["`-o -`"] * writes_stdout
    return [
        ", ".join(run_names),
        "yes" if "--runs" in options else "",
        "yes" if "--json" in options else "",
        f"`{out.metavar}`" if out is not None else "",
        ", ".join(streams),
    ]

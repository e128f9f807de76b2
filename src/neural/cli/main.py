"""`neural`: the verbs are the files of this folder; one is imported when it is used."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from neural.core.names import closest
from neural.core.registry import BrokenEntry
from neural.core.visible import visible


class Verbs(click.Group):
    """A group whose commands are the files beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The folder's listing."""
        files = pkgutil.iter_modules([str(Path(__file__).parent)])
        return sorted(file.name for file in files if file.name != "main" and not file.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The `command` of the file of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        found: click.Command = importlib.import_module(f"neural.cli.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was probably meant by an unknown verb."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.list_commands(ctx):
            guess = closest(name, self.list_commands(ctx))
            ctx.fail(f"no such command `{name}`." + (f" Did you mean `{guess}`?" if guess else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line each, of whole clauses: as many as there is room for."""
        names = self.list_commands(ctx)
        room = formatter.width - max(map(len, names)) - 6
        found = {name: self.get_command(ctx, name) for name in names}
        with formatter.section("Commands"):
            rows = [(name, _clauses(one.get_short_help_str(500), room)) for name, one in found.items() if one]
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """A command; an entry that another package brings and that is broken is a message, whatever needed it."""
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        ctx.color = True if os.environ.get("FORCE_COLOR") else False if plain else ctx.color
        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                return super().invoke(ctx)
        except BrokenEntry as wrong:
            from neural.cli._mistakes import Refused

            raise Refused(str(wrong)) from None


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None,
    line: str | None = None,
) -> None:
    """Our own warnings as a line for users; all others as Python shows them."""
    if category.__module__.partition(".")[0] == "neural":
        click.echo(visible(f"warning: {message}"), err=True)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


def _clauses(text: str, room: int) -> str:
    """The text up to a colon or semicolon, in at most so many letters; its first clause in any case."""
    text = text.rstrip(".")
    ends = [found.start() for found in re.finditer(r"[:;] ", text)] + [len(text)]
    return text[: max((end for end in ends if end <= room), default=ends[0])]


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="neural", message="neural %(version)s")
def main() -> None:
    """A laboratory for attention: declare a network, check it, train it, watch it.

    \b
    neural check net.neural          shapes, parameters and costs, or every mistake
    neural compile net.neural        a Python file that needs torch alone
    neural train net.neural          a run folder with everything that was learned and seen
    neural show                      how the newest run went
    neural report RUN…               one HTML file: curves, attention over time, findings
    neural board                     the live page of all runs
    neural debug net.neural          what each head attends to, and what is wrong
    neural analyze RUN               findings with evidence and advice
    neural segment notes.txt         where one part of a text ends and the next begins
    neural generate RUN              text that a language model writes
    neural dynamics FILE             how focus models learn where to look
    neural layers                    what a program can be made of
    """


if __name__ == "__main__":
    sys.exit(main())

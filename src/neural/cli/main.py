"""Entry point of `neural`: every file of this folder is a subcommand.

A subcommand is imported when it is needed. Its file may declare synonyms of its name: `ALIASES`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from neural import __version__
from neural.core.errors import EXIT_STOPPED, find_user_error, format_error
from neural.core.escape import escape_controls
from neural.core.names import find_closest
from neural.core.platform_support import make_output_encodable


class CommandGroup(click.Group):
    """Click group whose commands are the modules in this folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the modules, without `main` and private ones."""
        modules = pkgutil.iter_modules([str(Path(__file__).parent)])
        return sorted(
            module.name
            for module in modules
            if module.name != "main" and not module.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of that name or with that alias and return its `command`."""
        if cmd_name not in self.list_commands(ctx):
            cmd_name = self._find_alias(ctx, cmd_name) or cmd_name
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"neural.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Replace an alias by the command; list all commands for an unknown one."""
        name = args[0] if args else ""
        known_names = self.list_commands(ctx)
        if name and not name.startswith("-") and name not in known_names:
            aliased_name = self._find_alias(ctx, name)
            if aliased_name is not None:
                return super().resolve_command(ctx, [aliased_name, *args[1:]])
            guess = find_closest(name, known_names)
            ctx.fail(
                f"no such command `{name}`."
                + (f" Did you mean `{guess}`?" if guess else "")
                + f" There are {', '.join(known_names)}."
            )
        return super().resolve_command(ctx, args)

    def _find_alias(self, ctx: click.Context, alias: str) -> str | None:
        """The command whose file declares this alias."""
        for name in self.list_commands(ctx):
            module = importlib.import_module(f"neural.cli.{name}")
            if alias in getattr(module, "ALIASES", ()):
                return name
        return None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line. A symbol that the console cannot show is replaced."""
        for stream in (sys.stdout, sys.stderr):
            make_output_encodable(stream)
        with _count_interrupts() as interrupts:
            try:
                return super().main(*args, **kwargs)
            except Exception:
                # a library that is interrupted may raise an error of its own (pydantic does)
                if interrupts:
                    sys.exit(EXIT_STOPPED)
                raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per command, cut at the end of a clause instead of in the middle of a word."""
        names = self.list_commands(ctx)
        max_width = formatter.width - max(map(len, names)) - 6  # click's margins
        commands = {name: self.get_command(ctx, name) for name in names}
        with formatter.section("Commands"):
            rows = [
                (name, _shorten_clauses(command.get_short_help_str(500), max_width))
                for name, command in commands.items()
                if command
            ]
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        An error that the user can correct becomes a message and an exit code, here for all commands.
        """
        no_colour = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        ctx.color = True if os.environ.get("FORCE_COLOR") else False if no_colour else ctx.color
        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print "Aborted!" and exit with 1
            raise click.exceptions.Exit(EXIT_STOPPED) from None
        except BaseException as error:
            user_error = find_user_error(error)
            if user_error is None:
                raise
            click.echo(format_error(user_error), err=True)
            raise click.exceptions.Exit(user_error.exit_code) from None


@contextmanager
def _count_interrupts() -> Iterator[list[int]]:
    """Append to a list at every Ctrl-C, which raises KeyboardInterrupt as ever.

    Without effect outside of the main thread, and where Ctrl-C does something else already.
    """
    interrupts: list[int] = []
    previous = signal.getsignal(signal.SIGINT)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if previous is not signal.default_int_handler or not is_main_thread:
        yield interrupts
        return

    def interrupt(number: int, frame: Any) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print warnings of this package as one line; all others as Python does."""
    if category.__module__.partition(".")[0] == "neural":
        click.echo(escape_controls(f"warning: {message}"), err=True)
    else:
        print(
            warnings.formatwarning(message, category, filename, lineno, line),
            end="",
            file=file or sys.stderr,
        )


def _shorten_clauses(text: str, max_width: int) -> str:
    """The text up to the last colon or semicolon that fits; at least its first clause."""
    text = text.rstrip(".")
    clause_ends = [match.start() for match in re.finditer(r"[:;] ", text)] + [len(text)]
    return text[: max((end for end in clause_ends if end <= max_width), default=clause_ends[0])]


@click.command(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="neural %(version)s")
def main() -> None:
    """A laboratory for attention: declare a network, check it, train it, watch it.

    \b
    neural check net.neural          shapes, parameters and costs, or every error
    neural compile net.neural        a Python file that needs only torch
    neural train net.neural          a run folder: curves, checkpoints, attention
    neural show                      how the newest run went
    neural report RUN…               one HTML file: curves, attention over time, findings
    neural board                     a live web page of all runs
    neural debug net.neural          attention of every head, gradients, anomalies
    neural analyze RUN               findings with evidence and advice
    neural segment notes.txt         split a text into segments by topic
    neural generate RUN              text written by a language model
    neural dynamics FILE             how focus models learn where to attend
    neural layers                    layers, attention mechanisms, losses, optimizers
    """


if __name__ == "__main__":
    sys.exit(main())

"""Mistakes of users as messages with exit code 2, never as tracebacks; failures of training with exit code 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENAMETOOLONG

import click

from neural.core.visible import visible


class Refused(click.ClickException):
    """What was asked for cannot be done; nothing was changed."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """As it is: it says `error` itself where it comes from a text."""
        start = "" if self.message.startswith("error") else "error: "
        click.echo(visible(f"{start}{self.message}"), err=True)


class Failed(Refused):
    """It was begun and came to grief; what was saved is there."""

    exit_code = 1


@contextmanager
def told() -> Iterator[None]:
    """Every error that says something to the user, said."""
    from neural.blueprint import ProgramError
    from neural.core.registry import UnknownName
    from neural.core.settings import SettingsError
    from neural.tasks.task import TaskError
    from neural.tracking.trouble import RunError
    from neural.training.failure import Failure

    try:
        yield
    except (ProgramError, SettingsError, TaskError, RunError, UnknownName) as wrong:
        raise Refused(str(wrong)) from None
    except Failure as wrong:
        raise Failed(str(wrong)) from None
    except MemoryError as wrong:
        raise Refused(str(wrong) or "there is not enough memory for it") from None
    except OSError as wrong:
        if wrong.errno != ENAMETOOLONG:
            raise
        raise Refused(f"{str(wrong.filename)[:60]}…: no file has a name of that length") from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None

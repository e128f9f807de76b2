"""Errors of the command line: messages instead of tracebacks.

Exit code 2: the request cannot be carried out, nothing was changed. Exit code 1: it failed after
it had started. Exit code 130: interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from neural.core.escape import escape_controls


class UserError(click.ClickException):
    """The request cannot be carried out; nothing was changed. Exit code 2."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Print the message; `error:` is put before it unless it starts with `error` already."""
        prefix = "" if self.message.startswith("error") else "error: "
        click.echo(escape_controls(f"{prefix}{self.message}"), err=True)


class CommandFailedError(UserError):
    """The command failed after it had started; what was saved remains. Exit code 1."""

    exit_code = 1


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn errors that a user can cause into messages with an exit code; others stay tracebacks."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None  # 128 + SIGINT
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BaseException as error:
        # a panic of a Rust library, such as tokenizers, is no Exception
        is_panic = type(error).__name__ == "PanicException"
        if not isinstance(error, Exception) and not is_panic:
            raise
        if is_panic:
            raise UserError(f"a library cannot use this input: {error}") from None
        from neural.workflows.errors import describe_error  # imports the errors of all folders

        described = describe_error(error)
        if described is None:
            raise
        error_class = CommandFailedError if described.exit_code == 1 else UserError
        raise error_class(described.message) from None

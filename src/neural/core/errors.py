"""The base class of all errors of the package, and errors that several folders raise.

The command line catches `NeuralError` in one place (cli/main.py): it prints the message and exits with
`exit_code`. Any other error is a bug and keeps its traceback.
"""

from __future__ import annotations

from errno import ENAMETOOLONG

from neural.core.escape import escape_controls

EXIT_FAILED, EXIT_REFUSED, EXIT_STOPPED = 1, 2, 130
"""1: it failed after it had started; 2: refused, nothing was changed; 130: stopped by a signal."""
MAX_SHOWN_NAME = 60
"""A file name that is too long for the system is cut to this number of characters in messages."""


class NeuralError(Exception):
    """Something that the user can correct; the message says what is wrong.

    `hint` says what to do about it, and ends the message: `no role is called x; did you mean y?`.
    """

    exit_code = EXIT_REFUSED

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.hint = hint


class CommandFailedError(NeuralError):
    """It failed after it had started; what was saved remains."""

    exit_code = EXIT_FAILED


class TaskError(NeuralError, ValueError):
    """A task (what a run learns, see neural/tasks) cannot use its data or its network.

    The message says why and what to do.
    """


def describe_os_error(error: OSError) -> str:
    """The operating system's message in lower case: `permission denied`."""
    return (error.strerror or str(error)).lower()


def find_user_error(error: BaseException) -> NeuralError | None:
    """The error that a user can correct, also behind errors of Python and libraries; None for a bug."""
    if isinstance(error, NeuralError):
        return error
    if isinstance(error, MemoryError):
        return NeuralError(str(error) or "there is not enough memory for it")
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        return NeuralError(f"{str(error.filename)[:MAX_SHOWN_NAME]}…: the file name is too long")
    # a panic of a Rust library, such as tokenizers, is no Exception
    if type(error).__name__ == "PanicException":
        return NeuralError(f"a library cannot use this input: {error}")
    return None


def format_error(error: NeuralError) -> str:
    """The message after `error: `, without control characters of foreign files.

    Diagnostics of programs and settings begin with `error[CODE]` already.
    """
    message = str(error)
    return escape_controls(message if message.startswith("error") else f"error: {message}")

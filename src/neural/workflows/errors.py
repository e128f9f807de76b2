"""Messages and exit codes of errors that a user can cause.

Any other error is a bug: it keeps its traceback.
"""

from __future__ import annotations

from errno import ENAMETOOLONG
from typing import NamedTuple

from neural.core.errors import TaskError
from neural.core.escape import escape_controls
from neural.core.registry import UnknownNameError
from neural.core.settings import SettingsError
from neural.runs.errors import RunError
from neural.training.errors import TrainingError
from neural.workflows.load import ProgramError

EXIT_FAILED, EXIT_REFUSED, EXIT_STOPPED = 1, 2, 130
"""1: training failed; 2: the input is wrong and nothing was started; 130: stopped by a signal."""
MAX_SHOWN_NAME = 60
"""A file name that is too long for the system is cut to this number of characters in messages."""


class DescribedError(NamedTuple):
    """What to print on stderr, and the exit code."""

    message: str
    exit_code: int


def describe_error(error: BaseException) -> DescribedError | None:
    """Message and exit code of an error that the user can correct; None for a bug."""
    if isinstance(error, ProgramError | SettingsError | TaskError | RunError | UnknownNameError):
        return DescribedError(format_error(str(error)), EXIT_REFUSED)
    if isinstance(error, TrainingError):
        return DescribedError(format_error(str(error)), EXIT_FAILED)
    if isinstance(error, MemoryError):
        return DescribedError(
            format_error(str(error) or "there is not enough memory for it"), EXIT_REFUSED
        )
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        name = str(error.filename)[:MAX_SHOWN_NAME]
        return DescribedError(format_error(f"{name}…: the file name is too long"), EXIT_REFUSED)
    return None


def format_error(message: str) -> str:
    """Put `error: ` before a message, unless it begins so; escape control characters.

    Diagnostics of programs and settings begin with `error[CODE]`.
    """
    return escape_controls(message if message.startswith("error") else f"error: {message}")

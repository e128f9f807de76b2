"""Errors that several folders raise and the command line reports as messages."""

from __future__ import annotations


class TaskError(ValueError):
    """A task (what a run learns, see neural/tasks) cannot use its data or its network.

    The message says why and what to do.
    """


def describe_os_error(error: OSError) -> str:
    """The operating system's message in lower case: `permission denied`."""
    return (error.strerror or str(error)).lower()

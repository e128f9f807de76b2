"""Errors that several folders raise and the command line reports as messages."""

from __future__ import annotations


class TaskError(ValueError):
    """The data or the network cannot be used. The message says why and what to do."""


def describe_os_error(error: OSError) -> str:
    """The operating system's message in lower case: `permission denied`."""
    return (error.strerror or str(error)).lower()

"""Import of optional packages, with an install command in the error message."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from neural.core.distribution import format_install_command
from neural.core.errors import TaskError


class MissingPackageError(TaskError, ImportError):
    """An optional package is not installed; the message has the command that installs it."""


def import_optional(module: str, *, feature: str, extra: str = "", install: str = "") -> Any:
    """Import a module. Raises MissingPackageError if its package is not installed.

    `extra` is the extra of this distribution that has the package; `install` is the package, if no
    extra has it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise  # the package is installed, but one of its own imports is missing
        command = format_install_command(extra) if extra else f"pip install {install}"
        raise MissingPackageError(
            f"{feature} needs a package that is not installed: run `{command}`"
        ) from None

"""Packages that only some data needs: where one is missing, the message names the command that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from neural.tasks.task import TaskError


def needed(module: str, *, for_: str, install: str) -> Any:
    """The module; TaskError where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module.startswith(missing.name):
            raise   # the package is there, and broken
        raise TaskError(f"{for_} needs a package that is not installed: pip install {install}") from None

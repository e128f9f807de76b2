"""Import of optional packages, with an install command in the error message."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from neural.core.errors import TaskError


def import_optional(module: str, *, feature: str, install: str) -> Any:
    """Import a module. Raises TaskError if its package is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module.startswith(missing.name):
            raise  # the package is installed, but one of its own imports is missing
        raise TaskError(
            f"{feature} needs a package that is not installed: run `pip install {install}`"
        ) from None

"""Sinks: other trackers that get a run's scalars too, as they are logged. One file each in sinks/.

The run folder is complete without them. Their packages are imported when a sink is asked for.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.tracking.trouble import RunError


class Sink(ABC):
    """Takes the scalars of one run."""

    package: ClassVar[str]
    """What is imported; `pip` is what is installed for it."""
    pip: ClassVar[str]

    def __init__(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Connect. `name` is the run's; the same name again goes on with the same run, where the tracker can."""
        try:
            self.library: Any = importlib.import_module(self.package)
        except ImportError as error:
            raise RunError(
                f"the sink `{type(self).__name__.lower()}` needs a package that is not here; `pip install {self.pip}`"
            ) from error
        self.open(name, folder, settings)

    @abstractmethod
    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Begin, with `self.library` imported."""

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Scalars of a step."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings as one level: `training.steps`."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found

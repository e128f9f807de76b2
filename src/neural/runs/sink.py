"""Base class of sinks: experiment trackers (MLflow …) that receive a run's scalars too.

sinks/ has one file for each tracker.

The run folder is complete without sinks. A tracker's package is imported when its sink is created.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.runs.errors import RunError


class Sink(ABC):
    """Sends the scalars of one run to another tracker."""

    package: ClassVar[str]
    """Name for `import`."""
    pip_name: ClassVar[str]
    """Name for `pip install`."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Import the package and open the tracker's run `name`; resumes it if the tracker can.

        `folder` is the run folder, `settings` are those of the experiment.
        """
        try:
            self.library: Any = importlib.import_module(self.package)
        except ImportError as error:
            raise RunError(
                f"the sink `{type(self).__name__.lower()}` needs a package that is not installed; "
                f"`pip install {self.pip_name}`"
            ) from error
        self.open(name, folder, settings)

    @abstractmethod
    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Open the tracker's run; `self.library` is the imported package."""

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Send scalars of a step."""

    @abstractmethod
    def close(self) -> None:
        """Send what is pending and close."""

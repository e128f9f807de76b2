"""Trackio: a run of the project `neural` in its local database; `trackio show` displays it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.runs.sink import Sink


class Trackio(Sink):
    """A run of the same name in Trackio."""

    package: ClassVar[str] = "trackio"
    pip_name: ClassVar[str] = "trackio"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Create or resume the run of that name."""
        self._run = self.library.init(
            project="neural", name=name, resume="allow", config=dict(settings)
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Write pending values and finish."""
        self._run.finish()

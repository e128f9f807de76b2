"""Trackio: a run of the project `neural` in its local database; `trackio show` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.tracking.sink import Sink


class Trackio(Sink):
    """A run of that name in Trackio."""

    package: ClassVar[str] = "trackio"
    pip: ClassVar[str] = "trackio"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Begin, or go on with the run of that name."""
        self._run = self.library.init(project="neural", name=name, resume="allow", config=dict(settings))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()

"""Weights & Biases: a run of the project `neural`; `WANDB_MODE=offline` keeps it here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.tracking.sink import Sink


class Wandb(Sink):
    """A run of that name in Weights & Biases."""

    package: ClassVar[str] = "wandb"
    pip: ClassVar[str] = "wandb"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Begin, or go on with the run of that name."""
        self._run = self.library.init(
            project="neural", name=name, id=name, resume="allow", dir=str(folder), config=dict(settings)
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()

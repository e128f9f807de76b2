"""Weights & Biases: a run of the project `neural`; `WANDB_MODE=offline` keeps it local."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.runs.sink import Sink


class Wandb(Sink):
    """A run of the same name in Weights & Biases."""

    package: ClassVar[str] = "wandb"
    pip_name: ClassVar[str] = "wandb"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Create or resume the run of that name."""
        self._run = self.library.init(
            project="neural",
            name=name,
            id=name,
            resume="allow",
            dir=str(folder),
            config=dict(settings),
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Send pending values and finish."""
        self._run.finish()

"""TensorBoard: event files in the run folder; `tensorboard --logdir runs` shows all runs. Written by tensorboardX."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.tracking.sink import Sink


class Tensorboard(Sink):
    """Event files in `tensorboard/`, in the run folder."""

    package: ClassVar[str] = "tensorboardX"
    pip: ClassVar[str] = "tensorboardX"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """A new file there; TensorBoard joins those of one folder into one curve."""
        own = f".{time.time_ns()}"   # the name has only the second: a quick restart would overwrite
        self._writer = self.library.SummaryWriter(str(folder / "tensorboard"), filename_suffix=own)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

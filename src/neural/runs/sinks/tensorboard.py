"""TensorBoard: event files in the run folder, written by tensorboardX.

`tensorboard --logdir runs` shows all runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.runs.sink import Sink


class Tensorboard(Sink):
    """Event files in `tensorboard/`, in the run folder."""

    package: ClassVar[str] = "tensorboardX"
    pip_name: ClassVar[str] = "tensorboardX"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Create a new event file; TensorBoard joins the files of one folder into one curve."""
        # file names resolve to seconds: without a suffix a quick restart would overwrite
        suffix = f".{time.time_ns()}"
        self._writer = self.library.SummaryWriter(
            str(folder / "tensorboard"), filename_suffix=suffix
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write pending events."""
        self._writer.close()

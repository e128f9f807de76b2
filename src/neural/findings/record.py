"""What checks read: the measures, maps, scalars and facts of a training or of a capture.

A run folder is a record (runs/run_reader.py), and so are captures of attention in memory
(findings/capture_record.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from neural.runs.checkpoint import Checkpoint
    from neural.runs.status import RunStatus

WATCHED_TASK = "watched"
"""`task` in the settings of captures by `neural watch`; not the name of one of our tasks."""


class Record(Protocol):
    """The methods of a run that checks use; runs/run_reader.py describes them."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def path(self) -> Path | None:
        """The run folder; None in memory."""

    @property
    def settings(self) -> dict[str, Any]:
        """All settings; `task` is the name of the task."""

    @property
    def status(self) -> RunStatus:
        """State and last step."""

    def metadata(self, key: str, default: Any = None) -> Any:
        """A fact, such as the labels of the probe (`probe/labels`)."""

    def scalar_names(self) -> list[str]:
        """Names of the logged scalars."""

    def scalars(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one curve; RunError for an unknown name."""

    def measure_names(self) -> list[str]:
        """Names of the attention measures."""

    def measure(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values [step, layer, head] of a measure; RunError for an unknown name."""

    def half_means(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and the means of a measure on the two halves of the probe, [step, 2]."""

    def role_names(self) -> list[str]:
        """Names of the roles whose scores are known from all examples."""

    def map_steps(self) -> list[int]:
        """Steps that have attention maps."""

    def maps(self, step: int) -> dict[str, bytes]:
        """Encoded maps of a step, by layer name."""

    def events(self) -> list[tuple[int, str, str, float]]:
        """Step, kind, text and time of each event."""

    def load_checkpoint(
        self, which: Literal["newest", "best"] | int = "newest"
    ) -> Checkpoint | None:
        """Weights; None without any."""

    def change_counter(self) -> int:
        """Differs whenever the record has changed."""

"""What `neural calibrate` leaves in a run folder: `calibration.json`, whole or not at all.

    version     of this file
    weights     which weights it is of; a run that has learned since has others
    data        on which documents, in words
    boundary    P(a part begins): the chosen calibration, every method's scores, both reliability diagrams
    label       the same of the labels' probabilities, where labels were learned; else null
    threshold   the probability, after calibration, with the best F1 on these documents
    f1          that F1: exact, micro, on the documents that chose the threshold
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from neural.core.files import read_small, write_atomically
from neural.core.plain_json import read_json
from neural.tasks.cutting.calibration_choice import Choice
from neural.tasks.task import TaskError

FILE = "calibration.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """How far a run's probabilities can be trusted, and what makes them so."""

    weights: str
    data: str
    boundary: Choice
    label: Choice | None
    threshold: float
    f1: float

    def save(self, folder: Path) -> Path:
        """Into a run folder, in the place of an earlier one."""
        saved = {
            "version": VERSION, "weights": self.weights, "data": self.data, "threshold": self.threshold, "f1": self.f1,
            "boundary": self.boundary.to_dict(), "label": self.label.to_dict() if self.label else None,
        }  # fmt: skip
        path = folder / FILE
        write_atomically(path, json.dumps(saved, indent=1, allow_nan=False) + "\n")
        return path

    @classmethod
    def load(cls, folder: Path) -> Calibrated | None:
        """That of a run folder, or None where it was never calibrated; TaskError where the file is broken."""
        path = folder / FILE
        try:
            saved = read_json(read_small(path).decode())
            if saved["version"] != VERSION:
                raise ValueError(f"its version is {saved['version']}, this program reads {VERSION}")
            label = saved["label"]
            return cls(
                weights=saved["weights"], data=saved["data"], boundary=Choice.from_dict(saved["boundary"]),
                label=Choice.from_dict(label) if label else None, threshold=float(saved["threshold"]),
                f1=float(saved["f1"]),
            )  # fmt: skip
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise TaskError(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}") from None
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as problem:
            raise TaskError(f"{path} is no calibration that can be used: {problem}; calibrate again") from None

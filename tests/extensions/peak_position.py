"""A task of another package: at which position is the largest number of a sequence?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from neural.core.experiment import Experiment
from neural.core.metadata_fields import COUNT
from neural.core.page_section import PageSection
from neural.language.check import check
from neural.nn.build import build
from neural.tasks.task import Predictions, Task

LENGTH, FEATURES = 7, 4
PROGRAM = f"""network Peak {{
  input: ({LENGTH}, {FEATURES})
  layers:
    TransformerEncoder(num_heads=2, d_model={FEATURES}, dff=8)
    Flatten()
    Output({LENGTH}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


class PeakSettings(Experiment):
    """Settings of an experiment with the task `peak_position`."""

    task: Literal["peak_position"] = "peak_position"
    examples: int = Field(40, ge=8, description="Examples of each split.")


class PredictedPeaks:
    """Positions for the rows of an .npy file."""

    def __init__(self, positions: np.ndarray) -> None:
        self.positions = positions

    def to_records(self):
        return ({"position": int(position)} for position in self.positions)

    def to_section(self, width):
        rows = [(str(index), int(position)) for index, position in enumerate(self.positions)]
        return PageSection(title="peaks", table_head=("row", "position"), table_rows=rows)


class PeakPosition(Task):
    """Where is the largest number of a sequence?"""

    Settings: ClassVar[type[Experiment]] = PeakSettings
    metadata_fields = {"peak/length": COUNT}

    def __init__(self, experiment, folder, catalogue):
        super().__init__(experiment, folder, catalogue)
        self.network = check(PROGRAM, catalogue).networks[0]
        generator = np.random.default_rng(0)
        shape = (2, experiment.examples, LENGTH, FEATURES)
        self.x = torch.tensor(generator.normal(size=shape), dtype=torch.float32)
        self.y = self.x[..., 0].argmax(dim=-1)

    def build(self):
        return build(self.network)

    @property
    def program(self):
        return PROGRAM

    @property
    def batches_per_epoch(self):
        return self.experiment.examples // 8

    def batch(self, index):
        start = 8 * (index % self.batches_per_epoch)
        return {"x": self.x[0, start : start + 8], "y": self.y[0, start : start + 8]}

    def loss(self, model, batch):
        return model.loss(model.logits(batch["x"]), batch["y"]), {}

    def evaluate(self, model):
        scores = model.logits(self.x[1])
        accuracy = (scores.argmax(dim=-1) == self.y[1]).float().mean()
        return {
            "valid/loss": float(model.loss(scores, self.y[1])),
            "valid/accuracy": float(accuracy),
        }

    def probe_batch(self):
        return {"x": self.x[1, :2]}

    def forward(self, model, batch):
        return model(batch["x"])

    def metadata(self) -> dict[str, Any]:
        return {"peak/length": LENGTH}

    @classmethod
    def page_sections(cls, run):
        text = f"Sequences of {run.metadata('peak/length')} positions."
        return [PageSection(title="Peaks", text=text)]

    @classmethod
    def predict(cls, run, source):
        x = torch.tensor(np.load(Path(str(source))), dtype=torch.float32)
        with torch.no_grad():
            return Predictions([PredictedPeaks(run.load_model()(x).argmax(dim=-1).numpy())])

    @classmethod
    def example(cls, folder, catalogue):
        return cls(PeakSettings(examples=8), folder, catalogue)

"""Hybrid of two paradigms: the first finds the segment, the second sharpens the focus on it.

A paradigm is a loss that trains the focus on segments and their classifier together (paradigm.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import choice_field, entry_field, float_field, int_field
from neural.language.shapes import ShapeError
from neural.tasks.focus.paradigm import Paradigm, ParadigmProgress
from neural.tasks.focus.paradigms import registry
from neural.tasks.focus.paradigms.hard import Hard
from neural.tasks.focus.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Hybrid(Paradigm):
    """Two paradigms in sequence, by default soft → hard; switches when the second learns faster."""

    uses_estimator: ClassVar[bool] = True

    first: Paradigm = entry_field(registry, "Paradigm before the switch.", default=Soft())
    then: Paradigm = entry_field(registry, "Paradigm after the switch.", default=Hard())
    switch: str = choice_field(
        ("incentive", "step", "accuracy"),
        "Switch when the second has the larger focus gradient, at a step, or at a batch accuracy.",
        default="incentive",
    )
    value: float | None = float_field(
        "The step or the accuracy; by default half of the steps, or 0.9.", default=None, above=0
    )
    check_every: int = int_field("Steps between two checks.", default=10)
    checks: int = int_field("Checks in a row that must agree.", default=3)

    def verify(self) -> None:
        """Check `value`, and that neither stage has a schedule or a third network of its own."""
        for name in ("first", "then"):
            stage = getattr(self, name)
            if isinstance(stage, Paradigm) and type(stage).at_progress is not Paradigm.at_progress:
                raise ShapeError(
                    "E0217", f"`{name}` must be a paradigm without a schedule", at=[name]
                )
            if isinstance(stage, Paradigm) and stage.uses_inference_network:
                raise ShapeError(
                    "E0217", f"`{name}` must be a paradigm without an inference network", at=[name]
                )
        if self.switch == "accuracy" and (self.value or 0) > 1:
            raise ShapeError("E0217", "an accuracy is at most 1", at=["value"])
        if self.switch == "incentive" and self.value is not None:
            raise ShapeError("E0217", '`switch="incentive"` takes no `value`', at=["value"])

    def at_progress(self, progress: ParadigmProgress) -> Paradigm:
        """The first paradigm until the switch, then the second."""
        return self.then if progress.stage else self.first

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """Loss of the first stage; `at_progress` returns the paradigm to use in training."""
        return self.first.loss(batch)

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Prediction of the first stage; `at_progress` returns the paradigm to use in training."""
        return self.first.predict(batch)

    def max_classifier_calls(self, segments: int, samples: int) -> int:
        """Calls of the more expensive stage."""
        return max(
            self.first.max_classifier_calls(segments, samples),
            self.then.max_classifier_calls(segments, samples),
        )

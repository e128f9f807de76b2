"""Hybrid of two paradigms: the first finds the segment, the second sharpens the focus on it.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
The incentive of a paradigm is the norm of its gradient with respect to the focus network.
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

    # training may classify only the segments that an estimator (estimator.py) selects
    uses_estimator: ClassVar[bool] = True

    first: Paradigm = entry_field(registry, "Paradigm before the switch.", default=Soft())
    then: Paradigm = entry_field(registry, "Paradigm after the switch.", default=Hard())
    switch: str = choice_field(
        ("incentive", "step", "accuracy"),
        "When to switch: as soon as the second paradigm has the larger focus gradient, after a "
        "number of steps, or at an accuracy on the training batch.",
        default="incentive",
    )
    value: float | None = float_field(
        "The step or the accuracy of the switch; by default half of the steps, or 0.9.",
        default=None,
        above=0,
    )
    check_every: int = int_field("Steps between two checks whether to switch.", default=10)
    checks: int = int_field("Consecutive checks that must favour the switch.", default=3)

    def verify(self) -> None:
        """Check `value`, and that neither paradigm has a schedule or an inference network.

        ShapeError is the language's error for any invalid argument; E0217 is its code.
        """
        for name in ("first", "then"):
            stage = getattr(self, name)
            # A paradigm that overrides `at_progress` changes during training: it has a schedule.
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
        """Loss of the first paradigm. Training calls `at_progress(…).loss` instead."""
        return self.first.loss(batch)

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Prediction of the first paradigm. Training calls `at_progress(…).predict` instead."""
        return self.first.predict(batch)

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """Calls of the more expensive of both paradigms."""
        return max(
            self.first.max_classifier_calls(num_segments, num_selected),
            self.then.max_classifier_calls(num_segments, num_selected),
        )

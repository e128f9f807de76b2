"""Two paradigms one after the other: the first finds the segment, the second makes the focus commit to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import choice, count, entry, number
from neural.language.shapes import Misfit
from neural.tasks.focusing.paradigm import Moment, Paradigm
from neural.tasks.focusing.paradigms import registry
from neural.tasks.focusing.paradigms.hard import Hard
from neural.tasks.focusing.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Hybrid(Paradigm):
    """Soft first, then hard, unless said otherwise; switched when the second gives the focus the larger incentive."""

    estimated: ClassVar[bool] = True

    first: Paradigm = entry(registry, "What to begin with.", default=Soft())
    then: Paradigm = entry(registry, "What to go on with.", default=Hard())
    switch: str = choice(
        ("incentive", "step", "accuracy"),
        "When: the second's gradient of the focus is the larger, a step is reached, or an accuracy on the batches.",
        default="incentive",
    )
    value: float | None = number(
        "The step or the accuracy; by default half of the steps, or 0.9.", default=None, above=0
    )
    check_every: int = count("Steps between two checks.", default=10)
    checks: int = count("Checks in a row that must agree.", default=3)

    def verify(self) -> None:
        """Two stages, each a paradigm that stays what it is."""
        for name in ("first", "then"):
            stage = getattr(self, name)
            if isinstance(stage, Paradigm) and type(stage).at is not Paradigm.at:
                raise Misfit("E0217", f"`{name}` must be a paradigm that does not change itself", at=[name])
            if isinstance(stage, Paradigm) and stage.informed:
                raise Misfit("E0217", f"`{name}` must be a paradigm of two networks", at=[name])
        if self.switch == "accuracy" and (self.value or 0) > 1:
            raise Misfit("E0217", "an accuracy is 1 at most", at=["value"])
        if self.switch == "incentive" and self.value is not None:
            raise Misfit("E0217", "the incentive needs no `value`", at=["value"])

    def at(self, moment: Moment) -> Paradigm:
        """The first until the switch."""
        return self.then if moment.stage else self.first

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """Of the first stage; `at` gives the stage of any moment."""
        return self.first.loss(given)

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """Likewise."""
        return self.first.predict(given)

    def calls(self, segments: int, samples: int) -> int:
        """Of the dearer stage."""
        return max(self.first.calls(segments, samples), self.then.calls(segments, samples))

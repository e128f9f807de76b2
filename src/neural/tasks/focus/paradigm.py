"""Base class of paradigms: a loss, a prediction rule, and a cost in classifier calls.

A focus model has two networks: one scores the m segments of an example, one classifies them. The
focus is a distribution over the segments, usually the softmax of the scores. A paradigm says how
both are joined into one loss: soft attention, hard attention, marginal likelihood … In experiments
it is named by its class name in lowercase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import LowercaseDeclaration
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


@dataclass(frozen=True)
class ParadigmProgress:
    """Progress of a training run."""

    fraction: float
    """Share of the steps done, 0 to 1."""
    stage: int = 0
    """1 after a hybrid has switched to its second paradigm, else 0."""


class Paradigm(LowercaseDeclaration):
    """Base class: combines the focus on segments and the classifier into one loss."""

    uses_estimator: ClassVar[bool] = False
    """Whether an estimator may select the segments that are classified in training."""

    uses_inference_network: ClassVar[bool] = False
    """Whether training needs a third network that sees the label."""

    def at_progress(self, progress: ParadigmProgress) -> Paradigm:
        """The paradigm in effect at this progress; itself unless it changes in training."""
        return self

    def focus_weights(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """Focus weights of the segments; rows sum to 1."""
        return functional.softmax(scores, dim=-1)

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """Loss of each example."""
        raise NotImplementedError

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log class probabilities, combined as in training; exact, without the estimator."""
        raise NotImplementedError

    def max_classifier_calls(self, segments: int, samples: int) -> int:
        """Largest number of classifier calls per example; `samples` is that of the estimator."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> Paradigm:
        """An instance for contract tests."""
        return cls()

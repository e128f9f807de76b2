"""Base class of paradigms: a loss, a prediction rule, and a cost in classifier calls.

A focus model has two networks: one scores the m segments of an example, one classifies segments.
The focus is a distribution over the segments, usually the softmax of the scores. A paradigm says
how both are combined into one loss: soft attention, hard attention, marginal likelihood … In
experiments it is named by its class name in lowercase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import RegistryEntry
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


class Paradigm(RegistryEntry):
    """Base class: combines the focus on segments and the classifier into one loss.

    A `RegistryEntry` is a class that users name in lower case with its arguments, such as
    `renyi(tau=0.5)`.
    """

    uses_estimator: ClassVar[bool] = False
    """Whether training may classify only the segments that an estimator (estimator.py) selects."""

    uses_inference_network: ClassVar[bool] = False
    """Whether training needs a third network that knows the label (paradigms/variational.py)."""

    def at_progress(self, progress: ParadigmProgress) -> Paradigm:
        """The paradigm to use at this progress. Itself, unless the loss changes during training."""
        return self

    def focus_weights(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """Focus weights of the segments; rows sum to 1."""
        return functional.softmax(scores, dim=-1)

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """Loss of each example."""
        raise NotImplementedError

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log class probabilities, from all segments that matter: without an estimator."""
        raise NotImplementedError

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """Largest number of classifier calls per example of `num_segments` segments, in training.

        `num_selected` is the number of segments that the estimator selects.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> Paradigm:
        """An instance for the tests that run on every registered paradigm."""
        return cls()

"""Batch of examples with many segments: focus scores and lazily computed classifier outputs.

The focus is the softmax of the scores over the m segments of an example. An estimator
(estimator.py) selects K of them to classify in training, if m are too many. A unit is a distinct
segment. If examples share units (images of mosaics, words of texts), `members` holds the unit index
of each segment, and each unit is scored and classified only once per batch. A blend is the mean of
segments weighted by the focus.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from neural.core.errors import TaskError
from neural.nn.lazy_torch import functional, torch
from neural.tasks.focus.estimator import NO_SEGMENT
from neural.tasks.focus.estimators.exact import Exact

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.tasks.focus.estimator import Estimator
    from neural.tasks.focus.model import FocusModel

PADDING_SCORE = -1e9
"""Score of padding: low enough for a softmax weight of 0, finite to avoid NaN."""


class SegmentBatch:
    """Examples of m segments each, with their focus scores. The classifier runs on demand."""

    def __init__(
        self,
        model: FocusModel,
        x: Tensor,
        y: Int[Tensor, " B"],
        mask: Bool[Tensor, "B m"] | None = None,
        *,
        estimator: Estimator,
        samples: int,
        background_weight: float = 0.0,
        members: Int[Tensor, "B m"] | None = None,
    ) -> None:
        """`x` are the segments (B, m, …). With `members`, `x` are the units (U, …).

        `y` are the labels. `mask` is False for padding. `estimator` selects at most `samples`
        segments per example to classify in training. `background_weight` is the weight of the loss
        that makes predictions on unfocused segments uniform (`background_loss` in
        paradigms/_marginal.py).
        """
        self.model, self.x, self.y, self.members = model, x, y, members
        self.estimator, self.samples = estimator, samples
        self.background_weight = background_weight
        scores = model.score(x) if members is None else model.score(x.unsqueeze(0))[0][members]
        scores = upcast(scores)
        self.scores: Float[Tensor, "B m"] = (
            scores if mask is None else scores.masked_fill(~mask, PADDING_SCORE)
        )

    def with_exact_estimator(self) -> SegmentBatch:
        """A copy of the batch whose estimator selects all segments."""
        batch = copy(self)
        batch.estimator, batch.samples = Exact(), self.scores.shape[1]
        return batch

    @cached_property
    def log_focus(self) -> Float[Tensor, "B m"]:
        """Log-softmax of the scores."""
        return functional.log_softmax(self.scores, dim=-1)

    @property
    def inference_scores(self) -> Float[Tensor, "B m"]:
        """Scores of the inference network of variational attention, a second classifier.

        The score of a segment is its logit of the true label.
        """
        if getattr(self.model, "inference", None) is None:
            raise TaskError(
                "`variational` needs an inference network; only the task `focus` has one"
            )
        if self.members is None:
            class_scores = self.model.inference.logits(self.x.flatten(0, 1)).unflatten(
                0, self.x.shape[:2]
            )
        else:
            class_scores = self.model.inference.logits(self.x)[self.members]
        return upcast(self.gather_label(class_scores)).masked_fill(
            self.scores <= PADDING_SCORE, PADDING_SCORE
        )

    def select_segments(self) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices of the segments selected by the estimator (None: all), and their log weights.

        The weighted sum over the selected segments estimates the sum over all segments weighted by
        the focus. Entries with index NO_SEGMENT are unused: fewer than K segments were selected.
        """
        return self.estimator.choose(self.log_focus, self.samples)

    def log_probs(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """Log class probabilities of selected segments of each example (None: all)."""
        return functional.log_softmax(upcast(self.logits(index)), dim=-1)

    def logits(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """Class logits of selected segments of each example (None: all)."""
        if index is None:
            if self.members is None:
                return self.model.classify(self.x.flatten(0, 1)).unflatten(0, self.x.shape[:2])
            return self._classify_units(segments=self.members.numel())[self.members]
        example, position = (index != NO_SEGMENT).nonzero(as_tuple=True)
        logits = self.logits_at(example, index[example, position])
        if logits.shape[0] == index.numel():
            return logits.unflatten(0, index.shape)
        return logits.new_zeros(*index.shape, logits.shape[-1]).index_put(
            (example, position), logits
        )

    def logits_at(
        self, example: Int[Tensor, " N"], segment: Int[Tensor, " N"]
    ) -> Float[Tensor, "N C"]:
        """Class logits of single segments, by example index and segment index."""
        if self.members is None:
            return self.model.classify(self.x[example, segment])
        unit = self.members[example, segment]
        if len(unit) < len(self.x):  # fewer segments than units: classify only those
            return self.model.classify(self.x[unit])
        return self._classify_units(segments=len(unit))[unit]

    def gather_label(self, values: Tensor) -> Tensor:
        """Select the value of the true label from values per class, (B, C) or (B, K, C)."""
        y = self.y.view(-1, *[1] * (values.ndim - 1)).expand(*values.shape[:-1], 1)
        return values.gather(-1, y).squeeze(-1)

    def blend_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log class probabilities of the blend of the segments: one classifier call per example."""
        if self.members is None:
            logits = self.model.classify_blend(self.x, weights)
        else:
            logits = self.model.classify_shared_blend(
                self.x, self._sum_by_unit(weights, self.members)
            )
        return functional.log_softmax(upcast(logits), dim=-1)

    def feature_blend_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log class probabilities if the segments are averaged before the last layer."""
        if self.members is None:
            logits = self.model.classify_features(self.x, weights)
        else:
            logits = self.model.classify_shared_features(
                self.x, self._sum_by_unit(weights, self.members)
            )
            # `classify_features` counts B × m calls itself. The shared version does not know m.
            self.model.classifier_calls += weights.numel()
        return functional.log_softmax(upcast(logits), dim=-1)

    def _sum_by_unit(
        self, weights: Float[Tensor, "B m"], members: Int[Tensor, "B m"]
    ) -> Float[Tensor, "B U"]:
        """Sum the weights of the segments of each example by unit."""
        return weights.new_zeros(len(weights), len(self.x)).scatter_add(1, members, weights)

    def _classify_units(self, segments: int) -> Float[Tensor, "U C"]:
        """Class logits of every unit. Counts `segments` classifier calls, not one per unit.

        So the count, the cost that paradigms are compared by, does not depend on sharing.
        """
        logits = self.model.classify(self.x)  # counts len(x) calls
        self.model.classifier_calls += segments - len(self.x)
        return logits

    def mixture_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log of the weighted mean of the class probabilities of all segments."""
        log_w = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        return torch.logsumexp(log_w.unsqueeze(-1) + self.log_probs(None), dim=1)


def upcast(logits: Tensor) -> Tensor:
    """Convert to at least float32: probabilities near 0 and 1 need the precision."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))

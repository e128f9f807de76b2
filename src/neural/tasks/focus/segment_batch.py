"""Batch of examples with many segments: focus scores and lazily computed classifier outputs.

If examples share segments (images of mosaics, words of texts), each distinct one is scored and
classified once per batch. The results are the same; 1,000 segments made of a few hundred images
cost as much as those images. Such distinct segments are called units, and `members` are the unit
indices of the segments of each example.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from neural.core.errors import TaskError
from neural.nn.lazy_torch import functional, torch
from neural.tasks.focus.estimator import UNREAD
from neural.tasks.focus.estimators.exact import Exact

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.tasks.focus.estimator import Estimator
    from neural.tasks.focus.model import FocusModel

PADDING_SCORE = -1e9
"""Score of padding: low enough for a weight of 0, finite to avoid NaN."""


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
        background: float = 0.0,
        members: Int[Tensor, "B m"] | None = None,
    ) -> None:
        """`x` is (B, m, …). With `members`, `x` holds the units (U, …) that `members` index.

        `mask` is False for padding. `estimator` selects `samples` segments per example to classify
        in training. `background` is the weight of `background_loss` (paradigms/_marginal.py).
        """
        self.model, self.x, self.y, self.members = model, x, y, members
        self.estimator, self.samples, self.background = estimator, samples, background
        scores = model.score(x) if members is None else model.score(x.unsqueeze(0))[0][members]
        scores = upcast(scores)
        self.scores: Float[Tensor, "B m"] = (
            scores if mask is None else scores.masked_fill(~mask, PADDING_SCORE)
        )

    def with_exact_estimator(self) -> SegmentBatch:
        """The same batch with all segments classified."""
        batch = copy(self)
        batch.estimator, batch.samples = Exact(), self.scores.shape[1]
        return batch

    @cached_property
    def log_focus(self) -> Float[Tensor, "B m"]:
        """Log-softmax of the scores."""
        return functional.log_softmax(self.scores, dim=-1)

    @property
    def inference_scores(self) -> Float[Tensor, "B m"]:
        """Scores of the inference network, which sees the label."""
        if getattr(self.model, "inference", None) is None:
            raise TaskError(
                "`variational` needs an inference network; only the task `focus` has one"
            )
        if self.members is None:
            class_scores = self.model.inference.scores(self.x.flatten(0, 1)).unflatten(
                0, self.x.shape[:2]
            )
        else:
            class_scores = self.model.inference.scores(self.x)[self.members]
        return upcast(self.gather_label(class_scores)).masked_fill(
            self.scores <= PADDING_SCORE, PADDING_SCORE
        )

    def select_segments(self) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices of the segments selected by the estimator (None: all), and log weights.

        An index UNREAD is an unused entry: fewer than K segments were selected.
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
            return self._classify_units(self.members.numel())[self.members]
        example, position = (index != UNREAD).nonzero(as_tuple=True)
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
        return self._classify_units(len(unit))[unit]

    def gather_label(self, log_p: Tensor) -> Tensor:
        """Entries of the label's class in values by class, (B, C) or (B, K, C)."""
        y = self.y.view(-1, *[1] * (log_p.ndim - 1)).expand(*log_p.shape[:-1], 1)
        return log_p.gather(-1, y).squeeze(-1)

    def blend_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log class probabilities of the weighted mean of the segments: one classifier call."""
        if self.members is None:
            logits = self.model.classify_blend(self.x, weights)
        else:
            logits = self.model.classify_shared_blend(
                self.x, self._sum_by_unit(weights, self.members)
            )
        return functional.log_softmax(upcast(logits), dim=-1)

    def feature_blend_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log class probabilities of the weighted mean of the last layer's inputs."""
        if self.members is None:
            logits = self.model.classify_features(self.x, weights)
        else:
            logits = self.model.classify_shared_features(
                self.x, self._sum_by_unit(weights, self.members)
            )
            self.model.classifier_calls += weights.numel()
        return functional.log_softmax(upcast(logits), dim=-1)

    def _sum_by_unit(
        self, weights: Float[Tensor, "B m"], members: Int[Tensor, "B m"]
    ) -> Float[Tensor, "B U"]:
        """Sum the weights of the segments of each example by unit."""
        return weights.new_zeros(len(weights), len(self.x)).scatter_add(1, members, weights)

    def _classify_units(self, segments: int) -> Float[Tensor, "U C"]:
        """Class logits of every unit. Counts one classifier call per segment, not per unit."""
        logits = self.model.classify(self.x)
        self.model.classifier_calls += segments - len(self.x)
        return logits

    def mixture_log_probs(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log of the weighted mean of the class probabilities of all segments."""
        log_w = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        return torch.logsumexp(log_w.unsqueeze(-1) + self.log_probs(None), dim=1)


def upcast(scores: Tensor) -> Tensor:
    """Convert to at least float32: probabilities near 0 and 1 need the precision."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))

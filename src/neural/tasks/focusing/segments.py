"""A batch of segments on its way through a focus model: what the losses are made of."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from neural.modules.late import functional, torch
from neural.tasks.focusing.estimator import UNREAD
from neural.tasks.focusing.estimators.exact import Exact

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.tasks.focusing.estimator import Estimator
    from neural.tasks.focusing.networks import FocusModel

NOWHERE = -1e9
"""The score of padding: low enough for a weight of 0, finite so that nothing becomes NaN."""


class Segments:
    """Examples of m segments each, with the scores that the focus gave them. The classifier is asked when needed."""

    def __init__(
        self, model: FocusModel, x: Float[Tensor, "B m *shape"], y: Int[Tensor, " B"],
        mask: Bool[Tensor, "B m"] | None = None, *, estimator: Estimator, samples: int,
        background: float = 0.0,
    ) -> None:  # fmt: skip
        self.model, self.x, self.y = model, x, y
        self.estimator, self.samples, self.background = estimator, samples, background
        scores = model.score(x)
        self.scores: Float[Tensor, "B m"] = scores if mask is None else scores.masked_fill(~mask, NOWHERE)

    def exactly(self) -> Segments:
        """The same, with every segment read."""
        found = copy(self)
        found.estimator, found.samples = Exact(), self.x.shape[1]
        return found

    @cached_property
    def log_focus(self) -> Float[Tensor, "B m"]:
        """Logarithms of the softmax of the scores."""
        return functional.log_softmax(self.scores, dim=-1)

    def chosen(self) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """The segments that the estimator wants read (None: all), and the logarithms of their weights."""
        return self.estimator.choose(self.log_focus, self.samples)

    def read(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """What the classifier says about these segments of each example, and about no others: log probabilities."""
        return functional.log_softmax(self.logits(index), dim=-1)

    def logits(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """The same before normalisation."""
        if index is None:
            return self.model.classify(self.x.flatten(0, 1)).unflatten(0, self.x.shape[:2])
        example, place = (index != UNREAD).nonzero(as_tuple=True)
        found = self.model.classify(self.x[example, index[example, place]])
        if found.shape[0] == index.numel():
            return found.unflatten(0, index.shape)
        return found.new_zeros(*index.shape, found.shape[-1]).index_put((example, place), found)

    def of_label(self, log_p: Tensor) -> Tensor:
        """The true class's part of (B, C) or (B, K, C)."""
        y = self.y.view(-1, *[1] * (log_p.ndim - 1)).expand(*log_p.shape[:-1], 1)
        return log_p.gather(-1, y).squeeze(-1)

    def blended(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log probabilities for the weighted mean of the segments: one call of the classifier."""
        return functional.log_softmax(self.model.classify_blend(self.x, weights), dim=-1)

    def mixture(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Logarithms of the weighted mean of the probabilities that all segments give."""
        log_w = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        return torch.logsumexp(log_w.unsqueeze(-1) + self.read(None), dim=1)

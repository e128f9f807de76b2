"""A batch of segments on its way through a focus model: what the losses are made of.

Where examples share segments (images of a mosaic, words of a text), each is scored and read once for the whole batch:
the sums are the same, and a thousand segments of a few hundred images cost what those images cost.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from neural.modules.late import functional, torch
from neural.tasks.focusing.estimator import UNREAD
from neural.tasks.focusing.estimators.exact import Exact
from neural.tasks.task import TaskError

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
        self, model: FocusModel, x: Tensor, y: Int[Tensor, " B"],
        mask: Bool[Tensor, "B m"] | None = None, *, estimator: Estimator, samples: int,
        background: float = 0.0, members: Int[Tensor, "B m"] | None = None,
    ) -> None:  # fmt: skip
        """`x` is (B, m, …); with `members`, the segments that occur, each once, (U, …), and they say where."""
        self.model, self.x, self.y, self.members = model, x, y, members
        self.estimator, self.samples, self.background = estimator, samples, background
        scores = model.score(x) if members is None else model.score(x.unsqueeze(0))[0][members]
        scores = in_digits(scores)
        self.scores: Float[Tensor, "B m"] = scores if mask is None else scores.masked_fill(~mask, NOWHERE)

    def exactly(self) -> Segments:
        """The same, with every segment read."""
        found = copy(self)
        found.estimator, found.samples = Exact(), self.scores.shape[1]
        return found

    @cached_property
    def log_focus(self) -> Float[Tensor, "B m"]:
        """Logarithms of the softmax of the scores."""
        return functional.log_softmax(self.scores, dim=-1)

    @property
    def informed_scores(self) -> Float[Tensor, "B m"]:
        """What the network that sees the label makes of each segment."""
        if getattr(self.model, "inference", None) is None:
            raise TaskError("`variational` needs a network that sees the label; only the task `focus` has one")
        if self.members is None:
            found = self.model.inference.scores(self.x.flatten(0, 1)).unflatten(0, self.x.shape[:2])
        else:
            found = self.model.inference.scores(self.x)[self.members]
        return in_digits(self.of_label(found)).masked_fill(self.scores <= NOWHERE, NOWHERE)

    def chosen(self) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """The segments that the estimator wants read (None: all), and the logarithms of their weights."""
        return self.estimator.choose(self.log_focus, self.samples)

    def read(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """What the classifier says about these segments of each example, and about no others: log probabilities."""
        return functional.log_softmax(in_digits(self.logits(index)), dim=-1)

    def logits(self, index: Int[Tensor, "B K"] | None) -> Float[Tensor, "B K C"]:
        """The same before normalisation."""
        if index is None:
            if self.members is None:
                return self.model.classify(self.x.flatten(0, 1)).unflatten(0, self.x.shape[:2])
            return self._all_units(self.members.numel())[self.members]
        example, place = (index != UNREAD).nonzero(as_tuple=True)
        found = self.logits_of(example, index[example, place])
        if found.shape[0] == index.numel():
            return found.unflatten(0, index.shape)
        return found.new_zeros(*index.shape, found.shape[-1]).index_put((example, place), found)

    def logits_of(self, example: Int[Tensor, " N"], segment: Int[Tensor, " N"]) -> Float[Tensor, "N C"]:
        """The same for single segments, by the numbers of their examples and their own."""
        if self.members is None:
            return self.model.classify(self.x[example, segment])
        unit = self.members[example, segment]
        if len(unit) < len(self.x):
            return self.model.classify(self.x[unit])
        return self._all_units(len(unit))[unit]

    def of_label(self, log_p: Tensor) -> Tensor:
        """The true class's part of (B, C) or (B, K, C)."""
        y = self.y.view(-1, *[1] * (log_p.ndim - 1)).expand(*log_p.shape[:-1], 1)
        return log_p.gather(-1, y).squeeze(-1)

    def blended(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log probabilities for the weighted mean of the segments: one call of the classifier."""
        if self.members is None:
            logits = self.model.classify_blend(self.x, weights)
        else:
            logits = self.model.classify_blend_of(self.x, self._by_unit(weights, self.members))
        return functional.log_softmax(in_digits(logits), dim=-1)

    def blended_features(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Log probabilities for the weighted mean of what the classifier's last layer reads."""
        if self.members is None:
            logits = self.model.classify_features(self.x, weights)
        else:
            logits = self.model.classify_features_of(self.x, self._by_unit(weights, self.members))
            self.model.calls += weights.numel()
        return functional.log_softmax(in_digits(logits), dim=-1)

    def _by_unit(self, weights: Float[Tensor, "B m"], members: Int[Tensor, "B m"]) -> Float[Tensor, "B U"]:
        """What the segments of an example weigh, as what each unit weighs in it."""
        return weights.new_zeros(len(weights), len(self.x)).scatter_add(1, members, weights)

    def _all_units(self, meant: int) -> Float[Tensor, "U C"]:
        """What the classifier says of every unit; counted are the segments that they stand for."""
        found = self.model.classify(self.x)
        self.model.calls += meant - len(self.x)
        return found

    def mixture(self, weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Logarithms of the weighted mean of the probabilities that all segments give."""
        log_w = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        return torch.logsumexp(log_w.unsqueeze(-1) + self.read(None), dim=1)


def in_digits(scores: Tensor) -> Tensor:
    """In 32 bits at least, whatever the networks computed in: probabilities near 0 and 1 need them."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))

"""What the segmenter learns from: cross-entropy, and what may be added to it. All in nats, means over what counts.

`mask` is True for what counts: elements, not padding; and where boundaries are learned, no document's first element:
a part begins there in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import functional, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def cross_entropy(
    scores: Float[Tensor, "B T C"], target: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], *,
    label_smoothing: float = 0.0, class_weights: Float[Tensor, " C"] | None = None,
    element_weights: Float[Tensor, "B T"] | None = None,
) -> Float[Tensor, ""]:  # fmt: skip
    """The weighted mean: the weight of an element is that of its class times its own.

    Smoothing takes a share of the certainty from the true class and spreads it over all. 0 where nothing counts.
    """
    logs = scores.float().log_softmax(dim=-1)
    right = logs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    each = -(1 - label_smoothing) * right - label_smoothing * logs.mean(dim=-1)
    weights = target_weights(target, mask, class_weights, element_weights)
    return (each * weights).sum() / weights.sum().clamp(min=torch.finfo(each.dtype).tiny)


def target_weights(
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    class_weights: Float[Tensor, " C"] | None = None,
    element_weights: Float[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T"]:
    """How much every element counts in `cross_entropy`; 0 where the mask is False."""
    weights = mask.float()
    if class_weights is not None:
        weights = weights * class_weights.to(weights)[target]
    if element_weights is not None:
        weights = weights * element_weights
    return weights


def beside_boundaries(
    boundaries: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"], weight: float
) -> Float[Tensor, "B T"]:
    """`weight` for the two elements on either side of a true boundary, 1 for all others."""
    begins = boundaries & mask
    ends = functional.pad(begins[:, 1:], (0, 1))
    return 1 + (weight - 1) * (begins | ends).float()


def entropy(scores: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean entropy of what is predicted: 0 is sure of one class, log C undecided between all.

    Taken from the loss, it is a penalty on confidence (Pereyra et al., 2017); heads of the attention it does not touch.
    """
    logs = scores.float().log_softmax(dim=-1)
    return mean(-(logs.exp() * logs).sum(dim=-1), mask)


def boundary_loss(
    logits: Float[Tensor, "B T"], boundaries: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """How wrong the boundary scores inside the attention are, each a yes or no of its own."""
    each = functional.binary_cross_entropy_with_logits(logits.float(), boundaries.float(), reduction="none")
    return mean(each, mask)


def inner(mask: Bool[Tensor, "B T"], first: Int[Tensor, " B"]) -> Bool[Tensor, "B T"]:
    """All elements but the first of every document; `first` says which element a row begins with."""
    return mask & torch.cat((first.unsqueeze(-1) > 0, torch.ones_like(mask[:, 1:])), dim=1)


def mean(each: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Over what counts; 0 where nothing does."""
    return each.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)


def balanced(targets: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Weights under which every class counts as much as any other: n / (C · count); 0 for one that never occurs."""
    counts = np.sum([np.bincount(one, minlength=classes) for one in targets], axis=0)
    there = counts > 0
    return np.where(there, counts.sum() / (there.sum() * np.maximum(counts, 1)), 0.0)

"""Loss of the segmenter: weighted cross-entropy and its optional terms, in nats, as masked means.

An element is a sentence or line of a document; a gap is the place between two elements. A boundary
is an element where a segment begins. `mask` is True for elements that count in the mean. Padding
never counts; with boundaries as the target, the first element of a document does not count either,
because a segment always begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def cross_entropy(
    logits: Float[Tensor, "B T C"],
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    label_smoothing: float = 0.0,
    class_weights: Float[Tensor, " C"] | None = None,
    element_weights: Float[Tensor, "B T"] | None = None,
) -> Float[Tensor, ""]:
    """Weighted mean cross-entropy with label smoothing; 0 if no element counts.

    The weight of an element is the weight of its class times its element weight. As in torch's
    cross-entropy, the smoothed part of a target has the weight of the class that it goes to.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    target_log_probs = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    weights = target_weights(target, mask, class_weights, element_weights)
    element_only = target_weights(target, mask, None, element_weights)
    weighted = log_probs if class_weights is None else log_probs * class_weights.to(log_probs)
    losses = -(1 - label_smoothing) * target_log_probs * weights
    losses = losses - label_smoothing * weighted.mean(dim=-1) * element_only
    return losses.sum() / weights.sum().clamp(min=torch.finfo(losses.dtype).tiny)


def target_weights(
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    class_weights: Float[Tensor, " C"] | None = None,
    element_weights: Float[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T"]:
    """Weight of every element in `cross_entropy`; 0 where the mask is False."""
    weights = mask.float()
    if class_weights is not None:
        weights = weights * class_weights.to(weights)[target]
    if element_weights is not None:
        weights = weights * element_weights
    return weights


def weight_near_boundaries(
    boundaries: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"], weight: float
) -> Float[Tensor, "B T"]:
    """`weight` for the two elements beside a true boundary, 1 for all others."""
    # A boundary is the first element of a segment; beside it is the last element of the one before.
    is_first = boundaries & mask
    is_last = functional.pad(is_first[:, 1:], (0, 1))
    return 1 + (weight - 1) * (is_first | is_last).float()


def mean_entropy(logits: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean entropy of the predicted distributions: 0 (one class certain) to log C (uniform).

    Subtracted from the loss, it is a penalty on confidence (Pereyra et al., 2017).
    """
    log_probs = logits.float().log_softmax(dim=-1)
    return masked_mean(-(log_probs.exp() * log_probs).sum(dim=-1), mask)


def boundary_loss(
    logits: Float[Tensor, "B T"], boundaries: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """Binary cross-entropy of the boundaries that boundary-aware attention predicts itself.

    `logits` are those of its `BoundaryScorer` (nn/attention/boundary_aware.py).
    """
    losses = functional.binary_cross_entropy_with_logits(
        logits.float(), boundaries.float(), reduction="none"
    )
    return masked_mean(losses, mask)


def mask_gaps(mask: Bool[Tensor, "B T"], first: Int[Tensor, " B"]) -> Bool[Tensor, "B T"]:
    """The mask without first elements of documents, which have no gap before them.

    `first` is the index in its document of the first element of each row; it is above 0 if the row
    is a later chunk of a long document.
    """
    return mask & torch.cat((first.unsqueeze(-1) > 0, torch.ones_like(mask[:, 1:])), dim=1)


def masked_mean(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean where the mask is True; 0 if it is True nowhere."""
    return values.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)


def compute_class_weights(targets: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Balanced class weights, (classes,): n / (C · count of the class), as in scikit-learn.

    n is the number of all targets and C the number of classes that occur. The weight of a class
    that does not occur is 0.
    """
    counts = np.sum([np.bincount(target, minlength=classes) for target in targets], axis=0)
    occurs = counts > 0
    return np.where(occurs, counts.sum() / (occurs.sum() * np.maximum(counts, 1)), 0.0)

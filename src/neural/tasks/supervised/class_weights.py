"""Weights of classes in the training loss, so that rare classes count as much as frequent ones.

The weighted loss is that of `torch.nn.CrossEntropyLoss(weight=…, label_smoothing=…)`: the weighted
mean of the losses of all targets, each with the weight of its class; the smoothed part of a target
has the weight of the class that it goes to. Validation metrics are never weighted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.array_conversion import format_names
from neural.data.dataset import Dataset
from neural.data.targets import (
    IGNORE_INDEX,
    BinaryTargets,
    ClassTargets,
    DistributionTargets,
    Targets,
)
from neural.language.loss import Loss
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.task import Batch

COUNT_BATCH_SIZE = 4096
"""Examples whose classes are counted at once."""


@dataclass(frozen=True)
class ClassWeights:
    """A weight for every class."""

    by_name: dict[str, float]
    """Weights in the order of the classes; unnamed classes have their numbers as names."""

    def compute_loss(self, loss: Loss, targets: Targets, logits: Tensor, y: Tensor) -> Tensor:
        """Weighted mean of the loss; `y` is in the form that the loss takes."""
        classes = get_classes(targets, y).reshape(-1)
        weights = self.to_tensor(logits)
        # One row per target. A network with one sigmoid unit has one number per target.
        is_binary = isinstance(targets, BinaryTargets)
        rows = logits.reshape(-1) if is_binary else logits.reshape(-1, logits.shape[-1])
        labels = y.reshape(-1) if y.ndim < logits.ndim or is_binary else y.reshape(rows.shape)
        weighted_sum, weight_sum = logits.new_zeros(()), logits.new_zeros(())
        for number in torch.unique(classes).tolist():
            if number == IGNORE_INDEX:
                continue
            chosen = classes == number
            weight = weights[number] * chosen.sum()
            weighted_sum = weighted_sum + weight * loss.compute(rows[chosen], labels[chosen])
            weight_sum = weight_sum + weight
        smoothing = getattr(loss, "label_smoothing", 0.0)
        if smoothing:
            counted = classes != IGNORE_INDEX
            scores = torch.stack((-rows, rows), dim=-1) if is_binary else rows
            log_probs = (
                functional.logsigmoid(scores[counted])
                if is_binary
                else scores[counted].log_softmax(dim=-1)
            )
            # above, the smoothed part of all classes had the weight of the target
            excess = weights - weights[classes[counted]].unsqueeze(-1)
            weighted_sum = weighted_sum - smoothing * (excess * log_probs).mean(dim=-1).sum()
        return weighted_sum / weight_sum

    def sum_weights(self, targets: Targets, y: Tensor, is_counted: Tensor | None) -> float:
        """Sum of the weights of a batch of labels, without those that are not counted."""
        classes = get_classes(targets, targets.to_loss_target(y))
        counted = classes != IGNORE_INDEX
        counted = counted if is_counted is None else counted & is_counted
        weights = self.to_tensor(torch.zeros((), device=y.device))
        return float(weights[classes[counted]].sum())

    def to_tensor(self, like: Tensor) -> Tensor:
        """The weights on the device and in the dtype of a tensor."""
        return torch.tensor(list(self.by_name.values()), dtype=like.dtype, device=like.device)


def resolve_class_weights(
    setting: str | Mapping[str, float],
    data: Dataset,
    find_mask: Callable[[Batch], Tensor | None],
) -> ClassWeights | None:
    """The weights that the setting `class_weights` asks for; None for `none`.

    `balanced` weights are n / (classes · examples of the class), as in scikit-learn, counted over
    the training examples; `find_mask` finds the labels of a batch that are not padding. Raises
    TaskError if the targets are not classes, and for a mapping that does not name every class.
    """
    if setting == "none":
        return None
    targets = data.train.targets
    names = _class_names(data, targets)
    if isinstance(setting, Mapping):
        return ClassWeights(_order_weights(setting, names))
    counts = _count_classes(data, targets, len(names), find_mask)
    present = counts > 0
    weights = np.ones(len(names))  # of a class without examples: it never counts
    weights[present] = counts.sum() / (present.sum() * counts[present])
    return ClassWeights(dict(zip(names, weights.tolist(), strict=True)))


def get_classes(targets: Targets, y: Tensor) -> Tensor:
    """Class number of each target; `y` is in the form that the loss takes."""
    if isinstance(targets, DistributionTargets):
        return y.argmax(dim=-1)
    return y.reshape(len(y)).long() if isinstance(targets, BinaryTargets) else y


def _class_names(data: Dataset, targets: Targets) -> list[str]:
    """Names of all classes that the network predicts. TaskError if it predicts something else."""
    if not isinstance(targets, ClassTargets | DistributionTargets | BinaryTargets) or (
        isinstance(targets, BinaryTargets) and targets.output != (1,)
    ):
        raise TaskError(
            f"{data.examples.data_name}: `class_weights` needs one class per prediction; "
            "leave it out"
        )
    y = data.train.columns["y"]
    has_distributions = isinstance(targets, DistributionTargets) and y.dtype == torch.float32
    if has_distributions and not ((y.array == 0) | (y.array == 1)).all():
        raise TaskError(
            f"{data.examples.data_name}: `class_weights` needs classes, but `y` holds "
            "probabilities; leave it out"
        )
    count = 2 if isinstance(targets, BinaryTargets) else targets.output[-1]
    known = data.examples.classes
    return [known[number] if number < len(known) else str(number) for number in range(count)]


def _order_weights(weights: Mapping[str, float], names: list[str]) -> dict[str, float]:
    for name in weights:
        if name not in names:
            hint = suggest_name(name, names) or f"the classes are {format_names(names)}"
            raise TaskError(f"`class_weights` has `{name}`, which is not a class; {hint}")
    missing = [name for name in names if name not in weights]
    if missing:
        raise TaskError(f"`class_weights` has no weight for {format_names(missing)}")
    return {name: float(weights[name]) for name in names}


def _count_classes(
    data: Dataset,
    targets: Targets,
    class_count: int,
    find_mask: Callable[[Batch], Tensor | None],
) -> np.ndarray:
    """Number of training targets of each class."""
    counts, rows = np.zeros(class_count), data.sampler.examples
    for start in range(0, len(rows), COUNT_BATCH_SIZE):
        batch = data.train.take(rows[start : start + COUNT_BATCH_SIZE])
        classes, mask = get_classes(targets, targets.to_loss_target(batch["y"])), find_mask(batch)
        counted = classes[
            classes != IGNORE_INDEX if mask is None else (classes != IGNORE_INDEX) & mask
        ]
        counts += np.bincount(counted.reshape(-1).numpy(), minlength=class_count)
    return counts

"""Facts about the data that a run saves, so that its scores can be judged without the data.

The checks TRN004 to TRN006 (findings/checks) read them: the loss and the accuracy of the best
constant prediction on the validation examples, and the scales of the input features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neural.core.names import to_snake_case
from neural.data.dataset import Dataset
from neural.data.target_scaler import TargetScaler
from neural.data.targets import (
    BinaryTargets,
    ClassTargets,
    DistributionTargets,
    Targets,
    ValueTargets,
)
from neural.language.network import Network
from neural.nn.layers.batch_normalization import BatchNormalization

MAX_SUMMARIZED_EXAMPLES = 4096
"""Scales of features are measured on this many training examples."""
MAX_SAVED_FEATURES = 1000
"""Scales of more features are not saved."""


def summarize_data(
    data: Dataset, network: Network, target_scaler: TargetScaler | None = None
) -> dict[str, Any]:
    """Metadata entries of a run; those that do not apply are left out.

    With a `target_scaler`, the loss is that of standardised targets.
    """
    entries: dict[str, Any] = {}
    targets = data.valid.targets
    if len(data.held_out_indices) and not targets.position_shape:
        y = data.valid.columns["y"].array[data.held_out_indices]
        y = y if target_scaler is None else target_scaler.transform(y.astype(np.float64))
        entries["data/chance_loss"] = compute_chance_loss(y, targets)
        entries["data/majority_share"] = compute_majority_share(y, targets)
    entries["data/feature_scales"] = measure_feature_scales(data, network)
    return {key: value for key, value in entries.items() if value is not None}


def compute_chance_loss(y: np.ndarray, targets: Targets) -> float | None:
    """Loss of the best constant prediction for the labels `y`; None for an unknown loss."""
    if isinstance(targets, ClassTargets | DistributionTargets):
        shares = _class_shares(y, targets)
        return float(_entropy_terms(shares).sum())
    if isinstance(targets, BinaryTargets):
        p = y.mean(axis=0)
        return float((_entropy_terms(p) + _entropy_terms(1 - p)).mean())
    if isinstance(targets, ValueTargets):
        loss = to_snake_case(type(targets.loss).__name__)
        if loss == "mse":
            return float(y.var(axis=0).mean())
        if loss == "mae":
            return float(np.abs(y - np.median(y, axis=0)).mean())
    return None


def _entropy_terms(shares: np.ndarray) -> np.ndarray:
    """−p · ln p of every share, 0 for a share of 0."""
    return -shares * np.log(np.where(shares > 0, shares, 1))


def compute_majority_share(y: np.ndarray, targets: Targets) -> float | None:
    """Accuracy of always predicting the largest class; None if labels are values."""
    if isinstance(targets, ClassTargets | DistributionTargets):
        classes = y.argmax(axis=-1) if y.ndim > 1 else y.astype(np.int64)
        return float(np.bincount(classes).max() / len(classes))
    if isinstance(targets, BinaryTargets):
        p = y.mean(axis=0)
        return float(np.maximum(p, 1 - p).mean())
    return None


def measure_feature_scales(data: Dataset, network: Network) -> dict[str, float] | None:
    """Root mean square of each input feature over training examples; None for token ids.

    Features are columns of a table, or the last axis of an array. A network that starts with
    BatchNormalization scales its inputs itself: None.
    """
    starts_with_norm = bool(network.layers) and isinstance(
        network.layers[0].layer, BatchNormalization
    )
    if network.takes_token_ids or network.is_encoder_decoder or starts_with_norm:
        return None
    examples = data.sampler.examples
    step = -(-len(examples) // MAX_SUMMARIZED_EXAMPLES)
    x = data.train.take(examples[::step])["x"].double().numpy()
    x = x.reshape(-1, x.shape[-1])
    if x.shape[1] > MAX_SAVED_FEATURES:
        return None
    scales = np.sqrt((x**2).mean(axis=0)).tolist()
    names: Sequence[str] = (
        data.examples.columns if data.preprocessor is None else data.preprocessor.output_names
    )
    names = names if len(names) == len(scales) else tuple(map(str, range(len(scales))))
    return dict(zip(names, scales, strict=True))


def _class_shares(y: np.ndarray, targets: Targets) -> np.ndarray:
    """Share of each class: of class numbers, or the mean of distributions."""
    if y.ndim > 1:
        return y.mean(axis=0)
    return np.bincount(y.astype(np.int64), minlength=targets.output[-1]) / len(y)

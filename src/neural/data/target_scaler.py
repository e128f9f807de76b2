"""Standardise the targets of a regression: (y − mean) / std, fitted on the training examples.

A network learns targets of any scale only if they are near 0. The loss is computed on standardised
targets; predictions are converted back to the units of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neural.core.errors import TaskError
from neural.core.metadata_fields import MetadataField
from neural.data.dataset import Dataset
from neural.data.table_preprocessing import CONSTANT_TOLERANCE
from neural.data.targets import ValueTargets
from neural.language.network import Network

if TYPE_CHECKING:
    from torch import Tensor

    FindMask = Callable[[dict[str, Tensor]], Tensor | None]

BATCH_SIZE = 1024
"""Examples per step when padding has to be left out."""


@dataclass(frozen=True)
class TargetScaler:
    """Mean and standard deviation of the training targets, for each unit of the output."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def fit(cls, y: np.ndarray) -> Self:
        """Measure targets, (…, units). The standard deviation of a constant unit is set to 1."""
        values = np.asarray(y, dtype=np.float64).reshape(-1, y.shape[-1])
        mean, std = values.mean(axis=0), values.std(axis=0)
        is_constant = std <= CONSTANT_TOLERANCE * np.maximum(np.abs(mean), 1e-300)
        return cls(tuple(mean.tolist()), tuple(np.where(is_constant, 1.0, std).tolist()))

    def transform(self, y: Any) -> Any:
        """Targets, an array or a tensor, in standard deviations from the mean; units are last."""
        return (y - self._convert(self.mean, y)) / self._convert(self.std, y)

    def inverse_transform(self, outputs: Any) -> Any:
        """Outputs of the network in the units of the data."""
        return outputs * self._convert(self.std, outputs) + self._convert(self.mean, outputs)

    @staticmethod
    def _convert(numbers: tuple[float, ...], like: Any) -> Any:
        """Numbers of the same kind as `like`: an array, or a tensor on its device."""
        if isinstance(like, np.ndarray):
            return np.asarray(numbers, dtype=like.dtype)
        return like.new_tensor(numbers)

    def to_dict(self) -> dict[str, list[float]]:
        """Plain data for JSON."""
        return {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_dict(cls, saved: dict[str, list[float]]) -> Self:
        """The scaler that `to_dict` wrote."""
        return cls(tuple(saved["mean"]), tuple(saved["std"]))


def fit_target_scaler(data: Dataset, network: Network, find_mask: FindMask) -> TargetScaler:
    """Measure the targets of the training examples, without padding.

    `find_mask` finds the targets of a batch that are not padding. Raises TaskError if the targets
    are classes, or if the output of the network is limited to a range.
    """
    data_name, targets = data.examples.data_name, data.train.targets
    if not isinstance(targets, ValueTargets):
        raise TaskError(
            f"{data_name}: `standardize_target` is for numbers, but {targets.loss_name()} takes "
            "classes; leave it out"
        )
    if not has_linear_output(network):
        raise TaskError(
            f"{data_name}: `standardize_target` needs an output without activation, because "
            f"targets below their mean become negative; {network.name} ends with "
            f"`{_output_activation(network)}`"
        )
    rows = data.sampler.examples
    if not targets.position_shape:
        return TargetScaler.fit(data.train.columns["y"].array[rows])
    parts = []
    for start in range(0, len(rows), BATCH_SIZE):
        batch = data.train.take(rows[start : start + BATCH_SIZE])
        mask, y = find_mask(batch), batch["y"]
        parts.append((y.flatten(0, -2) if mask is None else y[mask]).numpy())
    return TargetScaler.fit(np.concatenate(parts))


def has_linear_output(network: Network) -> bool:
    """Whether the network can predict any number: its last layer has no activation."""
    return _output_activation(network) == "linear"


def _output_activation(network: Network) -> str:
    if network.output_activation != "linear":  # the loss contains it
        return network.output_activation
    return str(getattr(network.layers[-1].layer, "activation", None) or "linear")


def _is_target_scaler(value: Any) -> bool:
    """Whether a JSON value is what `TargetScaler.to_dict` returns, or None."""
    if value is None:
        return True
    if not isinstance(value, dict) or set(value) != {"mean", "std"}:
        return False
    mean, std = value["mean"], value["std"]
    return (
        isinstance(mean, list)
        and isinstance(std, list)
        and len(mean) == len(std)
        and all(type(number) in (int, float) for number in [*mean, *std])
        and all(number > 0 for number in std)
    )


TARGET_SCALER = MetadataField(
    _is_target_scaler, "a mapping with `mean` and `std`, lists of a number per output"
)
"""Type of the metadata entry that holds a scaler."""

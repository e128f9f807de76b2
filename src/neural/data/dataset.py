"""Dataset: examples checked against a network, split, and served in batches.

`Network` is a checked program (neural.language.network); with `has_two_streams` it is an
encoder and a decoder. Arrays are named `x`, `y`, `mask`, or `source`, `target`, `target_mask`
(array_roles.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.data.duplicates import find_duplicates
from neural.data.input_checks import (
    check_batches,
    check_inputs,
    compute_output_shape,
    find_first,
    get_pad_id,
)
from neural.data.sampler import BatchSampler, split_indices
from neural.data.source import Examples
from neural.data.targets import ClassTargets, DistributionTargets, Targets, select_targets
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.lazy_torch import torch  # the real torch, imported at the first use

if TYPE_CHECKING:
    from torch import Tensor

    from neural.data.source import Arrays

MAX_SHOWN_CLASSES = 5
"""Classes named in a note; more are counted."""
MAX_TENSOR_NUMBERS = 1 << 24
"""Arrays with more elements stay in numpy; only the rows of a batch are converted to a tensor."""


class TensorColumn:
    """One named array of a dataset, converted to tensors at once or per batch.

    The first axis is the example. Values are multiplied by `scale`.
    """

    def __init__(self, array: np.ndarray, dtype: torch.dtype, scale: float = 1.0) -> None:
        self.array, self.dtype, self.scale = array, dtype, scale
        convert_per_batch = (
            scale != 1.0 or isinstance(array, np.memmap) or array.size > MAX_TENSOR_NUMBERS
        )
        self.tensor: Tensor | None = None if convert_per_batch else torch.tensor(array, dtype=dtype)

    def take(self, examples: np.ndarray) -> Tensor:
        """The rows at the indices `examples`."""
        if self.tensor is not None:
            return self.tensor[torch.from_numpy(examples)]
        batch = torch.tensor(self.array[examples], dtype=self.dtype)
        return batch * self.scale if self.scale != 1.0 else batch

    def __len__(self) -> int:
        return len(self.array)


@dataclass(frozen=True)
class ExampleSplit:
    """Columns of one split: training or validation."""

    columns: dict[str, TensorColumn]
    targets: Targets

    def take(self, examples: np.ndarray) -> dict[str, Tensor]:
        """The examples at the indices `examples`, as named tensors."""
        return {name: column.take(examples) for name, column in self.columns.items()}


class Dataset:
    """Training and validation examples and their batch order.

    Raises TaskError if the examples do not fit the network.
    """

    def __init__(
        self,
        examples: Examples,
        network: Network,
        *,
        validation_split: float,
        batch_size: int,
        seed: int,
        split_seed: int = 0,
    ) -> None:
        """`seed` decides the order of examples, `split_seed` which of them are held out."""
        self.examples = examples
        self.predicts_target_tokens = network.has_two_streams and "y" not in examples.train
        """Whether the labels are the target tokens, shifted by one (see `shift_targets`)."""
        self.train = create_split(examples.train, examples, network, "")
        count = len(examples.train["y"] if "y" in examples.train else examples.train["target"])
        if examples.valid is not None:
            self.valid = create_split(examples.valid, examples, network, " (validation)")
            train_indices, self.held_out_indices = (
                np.arange(count),
                np.arange(len(self.valid.columns["y"])),
            )
        else:
            self.valid = self.train
            train_indices, self.held_out_indices = split_indices(
                count, validation_split, seed=split_seed, ordered=examples.ordered
            )
        self.sampler = BatchSampler(train_indices, batch_size, seed)
        check_batches(network, self.sampler.batch_size, examples.data_name)
        arrays = [
            {name: column.array for name, column in split.columns.items()}
            for split in (self.train, self.valid)
        ]
        self.duplicates = find_duplicates(
            arrays[0], train_indices, arrays[1], self.held_out_indices
        )
        duplicate_notes = (
            self.duplicates.format_notes(examples.data_name) if self.duplicates else []
        )
        self.notes = (
            *examples.notes,
            *collect_notes(self, train_indices, validation_split),
            *duplicate_notes,
        )

    def batch(self, index: int) -> dict[str, Tensor]:
        """Training batch number `index`, counted from 0 over all epochs."""
        return self.train.take(self.sampler[index])

    def validation_batch(self, start: int, stop: int) -> dict[str, Tensor]:
        """Validation examples `start` up to, not including, `stop`, in the order of the data."""
        return self.valid.take(self.held_out_indices[start:stop])

    def first_examples(self, count: int) -> dict[str, Tensor]:
        """The first validation examples; training examples if none is held out."""
        return (
            self.validation_batch(0, count)
            if len(self.held_out_indices)
            else self.train.take(self.sampler.examples[:count])
        )


def create_split(
    arrays: Arrays, examples: Examples, network: Network, split_suffix: str
) -> ExampleSplit:
    """Check arrays against the network and its loss, and convert them to columns.

    `split_suffix` follows the name of the data in messages.
    """
    split_name = examples.data_name + split_suffix
    check_inputs(arrays, network, split_name)
    prepared = (
        shift_targets(arrays, network, split_name) if network.has_two_streams else dict(arrays)
    )
    if network.loss is None:
        raise TaskError(f'{network.name} has no loss: add a line such as `loss: "mse"`')
    targets = select_targets(network.loss, compute_output_shape(network, prepared))
    prepared["y"] = targets.prepare(
        prepared["y"], f"{split_name}: `{'y' if 'y' in arrays else 'target'}`"
    )
    input_dtype = torch.int64 if network.takes_token_ids else torch.float32
    dtypes = {
        "y": targets.dtype(prepared["y"]),
        "mask": torch.bool,
        "target_mask": torch.bool,
        "y_mask": torch.bool,
    }
    columns = {
        name: TensorColumn(
            array, dtypes.get(name, input_dtype), 1.0 if name in dtypes else examples.scale
        )
        for name, array in prepared.items()
    }
    return ExampleSplit(columns, targets)


def shift_targets(arrays: Arrays, network: Network, data_name: str) -> dict[str, np.ndarray]:
    """Inputs and labels of an encoder-decoder network, for teacher forcing.

    Without `y`, every target token is predicted from those before it: the input is
    `target[:, :-1]`, the label `target[:, 1:]`.
    """
    shifted = dict(arrays)
    target, mask = shifted["target"], shifted.get("target_mask")
    if "y" in shifted:
        return shifted if mask is None else {**shifted, "y_mask": mask}
    if not network.takes_token_ids:
        raise TaskError(
            f"{data_name}: `target` holds features, not token ids; add the labels as `y`"
        )
    if target.shape[1] < 2:
        raise TaskError(
            f"{data_name}: `target` is {target.shape[1]} token long; it needs at least 2: "
            "a first token and one to predict"
        )
    pad_id = get_pad_id(network)
    empty_example = (
        find_first(target, lambda block: (block[:, 1:] == pad_id).all(axis=1))
        if pad_id is not None
        else None
    )
    if empty_example is None and mask is not None:
        empty_example = find_first(mask, lambda block: (block[:, 1:] == 0).all(axis=1))
    if empty_example is not None:
        raise TaskError(
            f"{data_name}: `target`: example {empty_example[0]} has no token to predict "
            "after its first; remove it"
        )
    shifted |= {"target": target[:, :-1], "y": target[:, 1:]}
    if mask is not None:
        shifted |= {"target_mask": mask[:, :-1], "y_mask": mask[:, 1:]}
    return shifted


def collect_notes(data: Dataset, train_indices: np.ndarray, validation_split: float) -> list[str]:
    """Notes for the user about the data, one sentence each."""
    notes, data_name, targets = [], data.examples.data_name, data.train.targets
    if validation_split > 0 and not len(data.held_out_indices):
        notes.append(
            f"{data_name}: one example is too few for a validation split; none is held out"
        )
    x = data.train.columns.get("x")
    if x is not None and x.array.dtype == np.uint8 and x.scale == 1.0 and x.dtype == torch.float32:
        notes.append(
            f"{data_name}: `x` is used unscaled, 0 to {x.array.max()}; "
            "divide by 255 for values from 0 to 1"
        )
    mask = data.train.columns.get("y_mask" if "target" in data.train.columns else "mask")
    if mask is not None and targets.position_shape not in ((), mask.array.shape[1:]):
        notes.append(
            f"{data_name}: the mask does not match the positions of predictions, "
            f"{format_shape(targets.position_shape)}; all positions count in the loss"
        )
    y = data.train.columns["y"]
    if (
        isinstance(targets, ClassTargets | DistributionTargets)
        and not targets.position_shape
        and y.dtype == torch.int64
    ):
        missing_classes = sorted(
            set(range(targets.output[-1]))
            - set(np.unique(y.array[train_indices]).astype(int).tolist())
        )
        if missing_classes:
            class_names = data.examples.classes
            shown = ", ".join(
                class_names[index] if index < len(class_names) else str(index)
                for index in missing_classes[:MAX_SHOWN_CLASSES]
            )
            more_text = (
                f" and {len(missing_classes) - MAX_SHOWN_CLASSES} more"
                if len(missing_classes) > MAX_SHOWN_CLASSES
                else ""
            )
            notes.append(f"{data_name}: no training example of class {shown}{more_text}")
    return notes

"""Dataset: examples checked against a network, split, and served in batches.

`Network` is a checked program (neural.language.network). Arrays are named `x`, `y`, `mask`, for an
encoder-decoder network `source`, `target`, `mask`, `target_mask` (array_names.py). Notes are
sentences for the user.
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
from neural.data.sampler import BatchSampler
from neural.data.source import Examples
from neural.data.splits import Fold, Split, split_examples
from neural.data.table_examples import apply_preprocessor, fit_examples
from neural.data.targets import (
    ClassTargets,
    DistributionTargets,
    Targets,
    select_targets,
    takes_classes,
)
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.lazy_torch import torch  # the real torch, imported at the first use

if TYPE_CHECKING:
    from torch import Tensor

    from neural.data.source import Arrays

MAX_SHOWN_CLASSES = 5
"""A note names up to this many classes; it gives the number of others."""
MAX_TENSOR_NUMBERS = 1 << 24
"""Arrays with more elements stay in numpy; only the rows of a batch are converted to a tensor."""


class TensorColumn:
    """One named array of a dataset, converted to tensors at once or per batch.

    The first axis is the example. Values are multiplied by `scale`.
    """

    def __init__(self, array: np.ndarray, dtype: torch.dtype, scale: float = 1.0) -> None:
        self.array, self.dtype, self.scale = array, dtype, scale
        # Scaled images stay uint8, a quarter of float32, and memory-mapped files stay on the disk.
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
    """The examples of one split, training or validation: its arrays by name, and kind of labels."""

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
        fold: Fold | None = None,
        stratify: bool = False,
        test_split: float = 0.0,
        test_examples: Examples | None = None,
    ) -> None:
        """`validation_split` and `test_split` are the shares of examples that are held out.

        `seed` decides the order of examples, `split_seed` which of them are held out. `fold` holds
        out one of several folds instead of `validation_split`. `stratify` keeps the share of every
        class. `test_examples` are test examples of their own.
        """
        self.predicts_target_tokens = network.is_encoder_decoder and "y" not in examples.train
        """Whether the labels are the target tokens, shifted by one (see `shift_targets`)."""
        labels = read_split_labels(examples, network) if stratify else None
        train_indices, self.held_out_indices, self.test_indices = split_dataset(
            examples, labels, validation_split, test_split, fold=fold, seed=split_seed
        )
        examples, self.preprocessor = fit_examples(examples, network, train_indices)
        self.examples = examples
        self.train = create_split(examples.train, examples, network, "")
        self.valid = (
            self.train
            if examples.valid is None
            else create_split(examples.valid, examples, network, " (validation)")
        )
        self.test: ExampleSplit | None = self.train if len(self.test_indices) else None
        """Examples that neither training nor validation uses; None if there are none."""
        if test_examples is not None:
            if self.preprocessor is not None:
                test_examples = apply_preprocessor(test_examples, self.preprocessor, network)
            self.test = create_split(test_examples.train, test_examples, network, "")
            self.test_indices = np.arange(len(self.test.columns["y"]))
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

    def test_batch(self, start: int, stop: int) -> dict[str, Tensor]:
        """Test examples `start` up to, not including, `stop`. ValueError if there are none."""
        if self.test is None:
            raise ValueError("the dataset has no test examples")
        return self.test.take(self.test_indices[start:stop])

    def first_examples(self, count: int) -> dict[str, Tensor]:
        """The first validation examples; training examples if none is held out."""
        return (
            self.validation_batch(0, count)
            if len(self.held_out_indices)
            else self.train.take(self.sampler.examples[:count])
        )


def split_dataset(
    examples: Examples,
    labels: np.ndarray | None,
    validation_split: float,
    test_split: float,
    *,
    fold: Fold | None,
    seed: int,
) -> Split:
    """Indices of training, validation and test examples. Raises TaskError if they cannot be split.

    `labels` are classes to stratify by. Data with a validation split of its own keeps it.
    """
    data_name, groups = examples.data_name, examples.groups
    count = _count_examples(examples.train["y" if "y" in examples.train else "target"])
    if examples.valid is not None:
        if fold is not None or test_split:
            key = "fold" if fold is not None else "test"
            raise TaskError(
                f"{data_name} has a validation split of its own, but `{key}` would hold out another; "
                f"leave `{key}` out, or remove the validation arrays"
            )
        valid_count = _count_examples(next(iter(examples.valid.values())))
        return Split(np.arange(count), np.arange(valid_count), np.arange(0))
    if groups is not None and len(np.unique(groups)) < 2:
        raise TaskError(
            f"{data_name}: all rows have the same value in the column of `table.group`, so none can "
            "be held out"
        )
    return split_examples(
        count,
        validation_split=validation_split,
        test_split=test_split,
        fold=fold,
        seed=seed,
        ordered=examples.ordered,
        labels=labels,
        groups=groups,
        data_name=data_name,
    )


def _count_examples(array: np.ndarray) -> int:
    return len(array) if array.ndim else 0  # `check_inputs` refuses it later


def read_split_labels(examples: Examples, network: Network) -> np.ndarray:
    """The class of each example, to stratify by. TaskError if examples have no single class."""
    y = examples.train.get("y")
    has_classes = network.loss is not None and takes_classes(network.loss)
    if not has_classes or y is None or not y.ndim or y.size != len(y):
        raise TaskError(
            f"{examples.data_name}: `stratify` needs one class per example; leave it out"
        )
    return np.asarray(y).reshape(-1)


def create_split(
    arrays: Arrays, examples: Examples, network: Network, split_suffix: str
) -> ExampleSplit:
    """Check arrays against the network and its loss, and convert them to columns.

    `split_suffix` follows the name of the data in messages.
    """
    split_name = examples.data_name + split_suffix
    check_inputs(arrays, network, split_name)
    prepared = (
        shift_targets(arrays, network, split_name) if network.is_encoder_decoder else dict(arrays)
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
    # An example whose labels are all padding would have no loss.
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
            is_held_out = np.isin(y.array, missing_classes).any()
            hint = "; `stratify: true` keeps some of every class" if is_held_out else ""
            notes.append(f"{data_name}: no training example of class {shown}{more_text}{hint}")
    return notes

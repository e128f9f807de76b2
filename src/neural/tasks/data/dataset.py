"""Examples that were checked against a network, split, and ready to be taken in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.language.network import Network
from neural.language.shapes import show
from neural.modules.late import torch
from neural.tasks.data.check import check_batches, check_inputs, first, gives, padding
from neural.tasks.data.column import Column
from neural.tasks.data.duplicate_rows import find_duplicates
from neural.tasks.data.order import Order
from neural.tasks.data.source import Examples
from neural.tasks.data.split import split
from neural.tasks.data.targets import Classes, Distributions, Targets, targets_of
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.data.source import Arrays


@dataclass(frozen=True)
class Part:
    """The examples of one kind: to train on, or held out."""

    columns: dict[str, Column]
    targets: Targets

    def take(self, examples: np.ndarray) -> dict[str, Tensor]:
        """The examples of these numbers, as named tensors."""
        return {name: column.take(examples) for name, column in self.columns.items()}


class Dataset:
    """What `train` and `valid` hold, and in which order it comes. TaskError where it does not fit the network."""

    def __init__(
        self,
        examples: Examples,
        network: Network,
        *,
        share: float,
        batch_size: int,
        seed: int,
        split_seed: int = 0,
    ) -> None:
        """`seed` decides in which order examples come, `split_seed` which of them are held out."""
        self.examples = examples
        self.shifted = network.two_streams and "y" not in examples.train
        """Whether the labels are the target's own tokens."""
        self.train = part(examples.train, examples, network, "")
        count = len(examples.train["y"] if "y" in examples.train else examples.train["target"])
        if examples.valid is not None:
            self.valid = part(examples.valid, examples, network, " (validation)")
            kept, self.held = np.arange(count), np.arange(len(self.valid.columns["y"]))
        else:
            self.valid = self.train
            kept, self.held = split(count, share, seed=split_seed, ordered=examples.ordered)
        self.order = Order(kept, batch_size, seed)
        check_batches(network, self.order.size, examples.where)
        arrays = [{name: column.array for name, column in part.columns.items()} for part in (self.train, self.valid)]
        self.duplicates = find_duplicates(arrays[0], kept, arrays[1], self.held)
        copies = self.duplicates.note(examples.where) if self.duplicates else []
        self.remarks = (*examples.remarks, *remarks(self, kept, share), *copies)

    def batch(self, index: int) -> dict[str, Tensor]:
        """The training batch of that number."""
        return self.train.take(self.order[index])

    def held_out(self, start: int, stop: int) -> dict[str, Tensor]:
        """The validation examples from one number to another, in their own order."""
        return self.valid.take(self.held[start:stop])

    def few(self, count: int) -> dict[str, Tensor]:
        """The first examples that are not trained on; of those that are, where none is held out."""
        return self.held_out(0, count) if len(self.held) else self.train.take(self.order.examples[:count])


def part(arrays: Arrays, examples: Examples, network: Network, which: str) -> Part:
    """Check the arrays and make columns of them."""
    where = examples.where + which
    check_inputs(arrays, network, where)
    found = shifted(arrays, network, where) if network.two_streams else dict(arrays)
    if network.loss is None:
        raise TaskError(f'{network.name} has no loss: add a line such as `loss: "mse"`')
    targets = targets_of(network.loss, gives(network, found))
    found["y"] = targets.fit(found["y"], f"{where}: `{'y' if 'y' in arrays else 'target'}`")
    inputs = torch.int64 if network.ids else torch.float32
    kinds = {"y": targets.dtype(found["y"]), "mask": torch.bool, "target_mask": torch.bool, "y_mask": torch.bool}
    columns = {
        name: Column(array, kinds.get(name, inputs), 1.0 if name in kinds else examples.scale)
        for name, array in found.items()
    }
    return Part(columns, targets)


def shifted(arrays: Arrays, network: Network, where: str) -> dict[str, np.ndarray]:
    """Two sequences: unless `y` says otherwise, every token of the target is predicted from those before it."""
    found = dict(arrays)
    target, mask = found["target"], found.get("target_mask")
    if "y" in found:
        return found if mask is None else {**found, "y_mask": mask}
    if not network.ids:
        raise TaskError(f"{where}: `target` holds features, so what to predict must be given as `y`")
    if target.shape[1] < 2:
        raise TaskError(f"{where}: `target` is {target.shape[1]} token long; it needs a first one and one to predict")
    pad = padding(network)
    alone = first(target, lambda part: (part[:, 1:] == pad).all(axis=1)) if pad is not None else None
    if alone is None and mask is not None:
        alone = first(mask, lambda part: (part[:, 1:] == 0).all(axis=1))
    if alone is not None:
        raise TaskError(f"{where}: `target`: example {alone[0]} has no token to predict behind its first; remove it")
    found |= {"target": target[:, :-1], "y": target[:, 1:]}
    if mask is not None:
        found |= {"target_mask": mask[:, :-1], "y_mask": mask[:, 1:]}
    return found


def remarks(data: Dataset, kept: np.ndarray, share: float) -> list[str]:
    """What is worth knowing before training."""
    said, where, targets = [], data.examples.where, data.train.targets
    if share > 0 and not len(data.held):
        said.append(f"{where}: one example is too few to hold any out; there is no validation")
    x = data.train.columns.get("x")
    if x is not None and x.array.dtype == np.uint8 and x.scale == 1.0 and x.dtype == torch.float32:
        said.append(f"{where}: `x` is used as it is, 0 to {x.array.max()}; divide by 255 for values from 0 to 1")
    mask = data.train.columns.get("y_mask" if "target" in data.train.columns else "mask")
    if mask is not None and targets.places not in ((), mask.array.shape[1:]):
        said.append(f"{where}: predictions stand at {show(targets.places)}, so no mask says which count: all do")
    y = data.train.columns["y"]
    if isinstance(targets, Classes | Distributions) and not targets.places and y.dtype == torch.int64:
        missing = sorted(set(range(targets.output[-1])) - set(np.unique(y.array[kept]).astype(int).tolist()))
        if missing:
            names = data.examples.classes
            shown = ", ".join(names[one] if one < len(names) else str(one) for one in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            said.append(f"{where}: no training example of class {shown}{more}")
    return said

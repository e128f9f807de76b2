"""Examples that a supervised run is evaluated on, and the training examples for the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.data.array_conversion import frame_columns, is_frame
from neural.data.dataset import Dataset, ExampleSplit, create_split
from neural.data.duplicates import MIN_DUPLICATE_SHARE, find_duplicates
from neural.data.loading import locate_data, serialize_location
from neural.data.target_scaler import TargetScaler
from neural.language.network import Network
from neural.tasks.supervised.inputs import load_labelled_examples, load_schema, load_target_scaler
from neural.tasks.task import TrainedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationExamples:
    """Labelled examples, and the training examples of the run if they still exist."""

    network: Network
    split: ExampleSplit
    indices: NDArray[np.int64]
    """Examples of `split` that are scored."""
    description: str
    """For messages: `180 validation examples of digits`."""
    groups: NDArray[np.int64]
    """Group of each scored example: its group in the data, else its own."""
    has_groups: bool = False
    predicts_target_tokens: bool = False
    """Whether labels are the target tokens of an encoder-decoder, shifted by one."""
    classes: tuple[str, ...] = ()
    target_scaler: TargetScaler | None = None
    """How the outputs of the network become values in the units of the data."""
    train: ExampleSplit | None = None
    train_indices: NDArray[np.int64] = field(default_factory=lambda: np.arange(0))
    notes: tuple[str, ...] = ()


def load_evaluation_data(
    run: TrainedRun, data: Any = None, *, allow_duplicates: bool = False
) -> EvaluationExamples:
    """Test examples of the run, else its validation examples; or all examples of `data`.

    If `data` is the data of the run, only its held-out examples are used. Training examples in
    other data are refused, unless `allow_duplicates`.
    """
    if data is None or _is_training_data(data, run):
        return _load_held_out(run, run.load_task())
    target = run.metadata("data/target")
    if is_frame(data) and target in frame_columns(data):
        data = (data, target)
    try:
        task: Any = run.load_task()
    except TaskError:
        task = None
    return _load_other_data(run, task, data, allow_duplicates=allow_duplicates)


def _load_held_out(run: TrainedRun, task: Any) -> EvaluationExamples:
    dataset: Dataset = task.data
    notes, data_name = list(task.notes), dataset.examples.data_name
    if dataset.test is not None and len(dataset.test_indices):
        split, indices, part = dataset.test, dataset.test_indices, "test"
        if split is not dataset.train:  # a file of its own
            notes += _check_training_overlap(dataset, split, run.name, allow=True)
            test_setting = run.settings.get("test")
            data_name = Path(test_setting).name if isinstance(test_setting, str) else data_name
    else:
        split, indices, part = dataset.valid, dataset.held_out_indices, "validation"
        if dataset.held_out_indices.size:
            notes.append(
                "there are no test examples: these selected the checkpoint, "
                "so the scores may be too good"
            )
    if not len(indices):
        raise TaskError(f"{run.name} has no held-out examples; name some with --data")
    groups = dataset.examples.groups if split is dataset.train else None
    return EvaluationExamples(
        network=task.network,
        split=split,
        indices=indices,
        description=f"{_format_count(len(indices), f'{part} example')} of {data_name}",
        groups=np.arange(len(indices)) if groups is None else groups[indices],
        has_groups=groups is not None,
        predicts_target_tokens=dataset.predicts_target_tokens,
        classes=dataset.examples.classes,
        target_scaler=load_target_scaler(run),
        train=dataset.train,
        train_indices=dataset.sampler.examples,
        notes=tuple(notes),
    )


def _load_other_data(
    run: TrainedRun, task: Any, data: Any, *, allow_duplicates: bool
) -> EvaluationExamples:
    """All examples of `data`; `task` is None if the training data is gone."""
    network, schema = run.load_network(), load_schema(run)
    examples = load_labelled_examples(run, data)
    arrays, notes = examples.train, list(examples.notes)
    if examples.valid is not None:
        arrays = examples.valid
        notes.append(f"{examples.data_name}: only its validation split is used")
    split = create_split(arrays, examples, network, "")
    count = len(split.columns["y"])
    groups = examples.groups if examples.valid is None else None
    if task is None:
        notes.append(
            "the training data is missing: there are no baselines, and it is unknown whether "
            "these examples are in it"
        )
    else:
        # arrays come from Python, where the option is a keyword
        option = "--allow-duplicates" if isinstance(data, str | Path) else "allow_duplicates=True"
        notes += _check_training_overlap(
            task.data, split, run.name, allow=allow_duplicates, option=option
        )
    return EvaluationExamples(
        network=network,
        split=split,
        indices=np.arange(count),
        description=f"{_format_count(count, 'example')} of {examples.data_name}",
        groups=np.arange(count) if groups is None else np.asarray(groups),
        has_groups=groups is not None,
        predicts_target_tokens=network.is_encoder_decoder and "y" not in arrays,
        classes=schema.classes or examples.classes,
        target_scaler=load_target_scaler(run),
        train=None if task is None else task.data.train,
        train_indices=np.arange(0) if task is None else task.data.sampler.examples,
        notes=tuple(notes),
    )


def _check_training_overlap(
    dataset: Dataset, split: ExampleSplit, run_name: str, *, allow: bool, option: str = ""
) -> list[str]:
    """Refuse training examples, or return a note that counts them.

    `option` is what the user writes to allow them; it is in the message of the refusal.
    """
    arrays = [
        {name: column.array for name, column in part.columns.items()}
        for part in (dataset.train, split)
    ]
    count = len(split.columns["y"])
    duplicates = find_duplicates(arrays[0], dataset.sampler.examples, arrays[1], np.arange(count))
    if duplicates is None or not duplicates.equal:
        return []
    message = (
        f"{duplicates.equal:,} of {_format_count(count, 'example')} have the inputs of a training "
        f"example of {run_name}"
    )
    if duplicates.equal >= MIN_DUPLICATE_SHARE * count and not allow:
        raise TaskError(f"{message}, so the scores would be too good; remove them, or use {option}")
    return [f"{message}; the scores may be too good"]


def _is_training_data(data: Any, run: TrainedRun) -> bool:
    """Whether `data` is the data of the run, of which only held-out examples may be used."""
    if not isinstance(data, str | Path):
        return False
    try:
        return serialize_location(locate_data(data, Path())) == run.settings.get("data")
    except TaskError:
        return False


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"

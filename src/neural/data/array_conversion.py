"""Convert what Python users have to numpy arrays: tensors, lists, data frames, torch data sets.

A frame is a table with named columns, of pandas or polars; neither package is imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name

if TYPE_CHECKING:
    from neural.language.network import Network

MAX_SHOWN_NAMES = 5
"""Columns or labels that a message lists; it counts the others."""


def to_array(value: Any, name: str) -> np.ndarray:
    """A tensor (from any device, detached), array, frame, series or list as a numpy array.

    `name` is that of the array in messages. TaskError for rows of different lengths, and for
    columns of a frame that are not numbers.
    """
    if is_frame(value):
        return frame_to_array(value, name)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except ValueError:  # lists of different lengths
        raise TaskError(
            f"{name} is not rectangular; pad its rows to one length and add a mask"
        ) from None


def is_frame(value: Any) -> bool:
    """Whether a value is a pandas or polars DataFrame."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def is_null(value: Any) -> bool:
    """Whether a value is None, NaN or the missing value of pandas."""
    is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def frame_columns(value: Any) -> tuple[str, ...]:
    """Column names of a frame; empty for other values, and for columns that have no names."""
    names = list(value.columns) if is_frame(value) else []
    return tuple(names) if all(isinstance(name, str) for name in names) else ()


def frame_to_array(frame: Any, name: str) -> np.ndarray:
    """The numbers of a frame, (rows, columns). TaskError names the columns that hold no numbers."""
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise TaskError(f"{name}: two columns have the same name; rename one of them")
    arrays = [np.asarray(frame[column]) for column in columns]
    wrong_names = [
        str(column)
        for column, array in zip(columns, arrays, strict=True)
        if array.dtype.kind not in "biuf"
    ]
    if wrong_names:
        raise TaskError(
            f"{name}: {format_names(wrong_names)} must hold numbers, without missing values; "
            "encode text as numbers first, for example with pandas.get_dummies"
        )
    return np.stack(arrays, axis=1) if arrays else np.empty((len(frame), 0))


def check_feature_columns(frame: Any, name: str) -> None:
    """TaskError if columns of a frame hold text or missing values; it names the keyword of `fit`.

    `name` is that of the frame in messages.
    """
    texts, incomplete = [], []
    for column in frame.columns:
        values = np.asarray(frame[column])
        if values.ndim > 1:  # two columns of this name: `frame_to_array` says so
            continue
        if values.dtype.kind in "OUST" and any(isinstance(value, str) for value in values):
            texts.append(str(column))
        elif (values.dtype.kind == "f" and np.isnan(values).any()) or (
            values.dtype.kind == "O" and any(map(is_null, values))
        ):
            incomplete.append(str(column))
    problems = []
    if texts:
        listed = ", ".join(f'"{text}"' for text in texts)
        problems.append(
            f"{format_names(texts)} must hold numbers, not text: "
            f'`table={{"categorical": [{listed}]}}` in `neural.fit` makes categories of the words'
        )
    if incomplete:
        problems.append(
            f"{format_names(incomplete)} must not have missing values: "
            '`table={"impute": "median"}` in `neural.fit` fills them'
        )
    if problems:
        raise TaskError(f"{name}: {'; '.join(problems)}")


def select_columns(frame: Any, columns: Sequence[str], name: str) -> Any:
    """The named columns of a frame, in this order. TaskError for one that is missing."""
    names = [str(column) for column in frame.columns]
    for column in columns:
        if column not in names:
            hint = suggest_name(column, names) or f"it has {format_names(names)}"
            raise TaskError(f"{name} has no column `{column}`; {hint}")
    return frame[list(columns)]


def split_target(frame: Any, target: str, name: str) -> tuple[Any, Any]:
    """(inputs, labels) of a frame whose column `target` holds the labels."""
    labels = select_columns(frame, [target], name)[target]
    return frame[[column for column in frame.columns if column != target]], labels


def is_torch_data(value: Any) -> bool:
    """Whether a value is a torch `Dataset` or `DataLoader`."""
    torch_data = sys.modules.get("torch.utils.data")
    return torch_data is not None and isinstance(value, torch_data.Dataset | torch_data.DataLoader)


def read_torch_data(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """All inputs and labels of a torch data set or loader, read once into memory.

    A data set yields examples `(x, y)`, a loader batches of them.
    """
    items = []
    # A map-style data set is indexed: `iter` would not stop if it never raises IndexError.
    is_indexed = not hasattr(type(data), "__iter__")
    for item in (data[index] for index in range(len(data))) if is_indexed else data:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise TaskError(
                f"the data: {type(data).__name__} must yield pairs (x, y), "
                f"got {_describe_item(item)}"
            )
        items.append(tuple(to_array(part, "the data") for part in item))
    if not items:
        raise TaskError("the data: there are no examples")
    # torch is imported: `is_torch_data` was true
    is_loader = isinstance(data, sys.modules["torch.utils.data"].DataLoader)
    join = np.concatenate if is_loader else np.stack
    try:
        x, y = (join(parts) for parts in zip(*items, strict=True))
    except ValueError:
        raise TaskError(
            "the data: its examples differ in shape; pad them to one length and pass arrays"
        ) from None
    return x, y


def _describe_item(item: Any) -> str:
    if isinstance(item, tuple | list):
        return f"{len(item)} values"
    return f"a {type(item).__name__}"


def check_text_labels(labels: np.ndarray, name: str) -> None:
    """TaskError if some labels are text and others are not, such as a missing value."""
    if labels.dtype.kind != "O" or not any(isinstance(label, str) for label in labels.flat):
        return
    for position, label in np.ndenumerate(labels):
        if not isinstance(label, str):
            raise TaskError(
                f"{name} has {label} at {list(position)} among text labels; "
                "remove or replace such examples"
            )


def check_class_count(classes: Sequence[str], network: Network, name: str) -> None:
    """TaskError if a network has fewer outputs than there are labels.

    One unit with a sigmoid predicts two classes.
    """
    units = network.output[-1]
    capacity = max(2, int(units)) if network.output_activation == "sigmoid" else int(units)
    if len(classes) > capacity:
        raise TaskError(
            f"{name} has {len(classes)} different labels ({format_names(classes)}), but "
            f"{network.name} predicts {capacity} classes; write `Output({len(classes)}, …)`"
        )


def format_names(names: Sequence[str]) -> str:
    """`a`, `b` and 3 more."""
    hidden_count = len(names) - MAX_SHOWN_NAMES
    shown = ", ".join(f"`{name}`" for name in names[:MAX_SHOWN_NAMES])
    return shown + (f" and {hidden_count} more" if hidden_count > 0 else "")

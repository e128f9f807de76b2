"""Arrays and data frames in memory, passed from Python.

Arrays have names such as `x`, `y`, `x_valid`. A frame is a pandas or polars DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.data.array_conversion import (
    check_feature_columns,
    frame_columns,
    is_frame,
    select_columns,
    split_target,
    to_array,
)
from neural.data.array_examples import create_array_examples, tabulate_arrays
from neural.data.input_checks import reshape_rows
from neural.data.source import DataLocation, DataSchema, DataSource, Examples
from neural.data.table_cells import create_table
from neural.data.table_columns import TableSettings, select_trained_columns

if TYPE_CHECKING:
    from neural.language.network import Network


class Arrays(DataSource):
    """`(x, y)`, `(x, y, x_valid, y_valid)` or `{"x": …, "y": …}`: arrays, tensors, frames, lists.

    Labels may be text: then the classes are named so. `(frame, "species")` takes the labels from a
    column.
    """

    description: ClassVar[str] = (
        "from Python: (x, y), (x, y, x_valid, y_valid), or a dict of arrays by name"
    )

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A tuple, or a mapping whose values are not paths."""
        if isinstance(location, Mapping):
            return not location or not all(isinstance(value, Path) for value in location.values())
        return isinstance(location, tuple)

    @classmethod
    def read(cls, location: Mapping[str, Any] | tuple[Any, ...], network: Network) -> Examples:
        """Convert all values to numpy arrays; column and class names are kept."""
        return _create_examples(_name_values(location), network)

    @classmethod
    def read_table(
        cls,
        location: Mapping[str, Any] | tuple[Any, ...],
        network: Network,
        settings: TableSettings,
        schema: DataSchema | None = None,
    ) -> Examples:
        """Convert labels to arrays; inputs stay a table, whose columns the settings describe.

        `schema` has the names in the training data if this is other data, such as a test file.
        """
        values = _name_values(location)
        classes = schema.classes if schema else ()
        inputs = {name: value for name, value in values.items() if name in ("x", "x_valid")}
        has_frames = any(map(is_frame, inputs.values()))
        if schema is not None and schema.columns and has_frames:
            settings = select_trained_columns(settings, schema, frame_columns(values["x"]))
            categorical = tuple(name for name in settings.categorical if name != schema.target)
            # the labels are in `y`
            settings = settings.model_copy(update={"target": None, "categorical": categorical})
        elif schema is not None:
            # Other data without names: the features, in the order of the training data. The saved
            # preprocessing is applied to tables only, so they are a table if there is one.
            is_preprocessed = settings.impute != "none" or bool(settings.categorical)
            settings = TableSettings(standardize=settings.standardize or is_preprocessed)
        if settings == TableSettings() or not has_frames:
            return tabulate_arrays(_create_examples(values, network, classes), settings)
        cells, valid_cells = (
            create_table(inputs[name], f"the data: `{name}`") if name in inputs else None
            for name in ("x", "x_valid")
        )
        # Row numbers stand for the inputs: their columns may hold words, which are no array.
        row_numbers = {name: np.arange(len(value))[:, None] for name, value in inputs.items()}
        examples = _create_examples({**values, **row_numbers}, network, classes)
        target = getattr(values.get("y"), "name", None)
        examples = replace(examples, target=target if isinstance(target, str) else None)
        return tabulate_arrays(examples, settings, cells, valid_cells)


def _name_values(location: Mapping[str, Any] | tuple[Any, ...]) -> dict[str, Any]:
    """Values by array name, as passed."""
    if isinstance(location, tuple):
        if len(location) not in (2, 4):
            raise TaskError(
                f"the data has {len(location)} arrays: pass (x, y) or (x, y, x_valid, y_valid)"
            )
        location = dict(zip(("x", "y", "x_valid", "y_valid"), location, strict=False))
    values = {name: value for name, value in location.items() if value is not None}
    return _split_target_columns(values)


def _create_examples(
    location: dict[str, Any], network: Network, classes: tuple[str, ...] = ()
) -> Examples:
    """Examples from values by array name; `classes` are those of the training data, if known."""
    columns = frame_columns(location.get("x"))
    for name, value in location.items():
        if columns and name.startswith("x_") and frame_columns(value):
            location[name] = select_columns(value, columns, f"the data: `{name}`")
    arrays = {name: _to_array(name, value, network) for name, value in location.items()}
    target = getattr(location.get("y"), "name", None)
    return replace(
        create_array_examples(arrays, "the data", network, classes),
        columns=columns,
        target=target if columns and isinstance(target, str) else None,
    )


def _split_target_columns(location: dict[str, Any]) -> dict[str, Any]:
    """Replace labels that are the name of a column by this column of the frame."""
    for suffix in ("", "_valid"):
        frame, target = location.get(f"x{suffix}"), location.get(f"y{suffix}")
        if isinstance(target, str):
            if not is_frame(frame):
                raise TaskError(
                    f"the data: `y{suffix}` is the text {target!r}; pass labels, or a DataFrame "
                    "and the name of its column"
                )
            location[f"x{suffix}"], location[f"y{suffix}"] = split_target(
                frame, target, f"the data: `x{suffix}`"
            )
    return location


def _to_array(name: str, value: Any, network: Network) -> np.ndarray:
    """A value as an array; the rows of a frame get the shape of the network's input."""
    if name.partition("_")[0] == "x" and is_frame(value):
        check_feature_columns(value, f"the data: `{name}`")
        return reshape_rows(to_array(value, f"the data: `{name}`"), network, "the data")
    return to_array(value, f"the data: `{name}`")

"""A dataset saved to disk by Hugging Face's `datasets`, as arrays for a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.core.optional_packages import import_optional
from neural.data.class_folders import VALIDATION_FOLDERS
from neural.data.image_conversion import PIXEL_SCALE, ImageConverter
from neural.data.source import DataLocation, DataSource, Examples
from neural.data.sources.texts import pad_texts
from neural.data.text_encoding import select_alphabet

if TYPE_CHECKING:
    from neural.language.network import Network

# Known column names. If a dataset has several of them, the first one is used.
TARGET_COLUMNS = ("label", "labels", "target", "y", "fine_label")
INPUT_COLUMNS = ("x", "input_ids", "image", "img", "text", "sentence", "features")
MASK_COLUMNS = ("mask", "attention_mask")
MARKER_FILES = ("dataset_dict.json", "state.json")
"""Metadata files of `datasets`, by which a folder is recognized."""


class HuggingFace(DataSource):
    """Columns of numbers, images or texts with a column `label`; uses the dataset's own splits."""

    description: ClassVar[str] = "a folder that `datasets` wrote with save_to_disk"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A folder with the metadata files of `datasets`."""
        return (
            isinstance(location, Path)
            and location.is_dir()
            and any((location / name).is_file() for name in MARKER_FILES)
        )

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """The training split, and the validation or test split if there is one."""
        datasets = import_optional(
            "datasets",
            feature=f"{location.name} (saved by `datasets`)",
            extra="hf",
        )
        try:
            loaded = datasets.load_from_disk(str(location))
        except IndexError:  # `datasets` writes no file for a table without rows, and cannot load it
            raise TaskError(f"{location.name}: there are no examples") from None
        except Exception as error:  # `datasets` and pyarrow raise many types on a broken folder
            raise TaskError(
                f"{location.name} cannot be read: {error or type(error).__name__}"
            ) from None
        splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"train": loaded}
        if "train" not in splits:
            raise TaskError(f"{location.name} has no split `train`; it has {', '.join(splits)}")
        reader = _DatasetReader(location.name, network)
        train = reader.read_split(splits["train"])
        valid_table = next((splits[name] for name in VALIDATION_FOLDERS if name in splits), None)
        valid = reader.read_split(valid_table) if valid_table is not None else None
        return Examples(
            data_name=location.name,
            train=train,
            valid=valid,
            scale=reader.scale,
            tokens=reader.tokens,
            classes=reader.classes,
            notes=tuple(dict.fromkeys(reader.notes)),
        )


class _DatasetReader:
    """Converts columns to arrays; collects class names, tokens and notes."""

    def __init__(self, data_name: str, network: Network) -> None:
        self.data_name, self.network = data_name, network
        self.scale = 1.0  # factor for the inputs: see Examples.scale
        self.classes: tuple[str, ...] = ()
        self.tokens: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.image_converter: ImageConverter | None = None

    def read_split(self, table: Any) -> dict[str, np.ndarray]:
        """Arrays `x`, `y` and, if there is one, `mask` of one split, a `datasets.Dataset`."""
        target_column = self.find_column(table, TARGET_COLUMNS, "the labels")
        input_column = self.find_column(table, INPUT_COLUMNS, "the inputs", excluded=target_column)
        if not len(table):
            raise TaskError(f"{self.data_name}: there are no examples")
        self.classes = tuple(getattr(table.features[target_column], "names", None) or ())
        mask_column = next((name for name in MASK_COLUMNS if name in table.column_names), None)
        arrays = self.read_inputs(table[input_column], input_column)
        if mask_column is not None and "mask" not in arrays:
            arrays["mask"] = self.to_array(table[mask_column], mask_column)
        return {**arrays, "y": self.to_array(table[target_column], target_column)}

    def find_column(
        self, table: Any, known: tuple[str, ...], content: str, excluded: str = ""
    ) -> str:
        """The first of the `known` column names, or the only column beside `excluded`.

        `content` says in the message what the column should hold.
        """
        names = [name for name in table.column_names if name != excluded]
        column = next((name for name in known if name in names), None)
        if column is None and excluded and len(names) == 1:
            column = names[0]
        if column is None:
            raise TaskError(
                f"{self.data_name}: no column holds {content}; it has {', '.join(names)}, "
                f"known are {', '.join(known)}"
            )
        return column

    def read_inputs(self, values: Any, name: str) -> dict[str, np.ndarray]:
        """Arrays from a column of images, texts or numbers, decided by its first value."""
        values = list(values)
        if hasattr(values[0], "convert"):  # a pillow image
            self.scale = PIXEL_SCALE
            converter = self.image_converter or ImageConverter(self.network, self.data_name)
            self.image_converter = converter
            return {
                "x": np.stack(
                    [converter.convert(image, f"row {row}") for row, image in enumerate(values)]
                )
            }
        if isinstance(values[0], str):
            alphabet = select_alphabet(self.network, self.data_name)
            self.tokens = alphabet.tokens
            names = [f"row {row}" for row in range(len(values))]
            arrays, notes = pad_texts(values, names, self.network, alphabet, self.data_name)
            self.notes += notes
            return arrays
        return {"x": self.to_array(values, name)}

    def to_array(self, values: Any, name: str) -> np.ndarray:
        """Values as an array. Raises TaskError if rows differ in length."""
        try:
            return np.asarray(list(values))
        except ValueError:
            raise TaskError(
                f"{self.data_name}: the rows of `{name}` differ in length; pad them and add an "
                "attention_mask"
            ) from None

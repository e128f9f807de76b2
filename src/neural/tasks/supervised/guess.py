"""Guess a supervised experiment for a table or for a folder per class, with a network for it.

Tables: the target is the column named like one (TARGET_NAMES), else the last. Words as targets, or
few different whole numbers, are classes; other numbers are a regression. Columns of words are
categories, unless almost every row has another word; then they are left out. Folders per class:
images become patches, and texts characters, for a small transformer.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.data.class_folders import ClassFolders, find_class_folders, has_class_folders
from neural.data.dataset import split_dataset
from neural.data.optional_packages import import_optional
from neural.data.source import Examples, UnfittedTable
from neural.data.sources.images import SUFFIXES as IMAGE_SUFFIXES
from neural.data.sources.texts import SUFFIXES as TEXT_SUFFIXES
from neural.data.table_cells import SUFFIXES as TABLE_SUFFIXES
from neural.data.table_cells import TableCells, is_number, read_table_file
from neural.data.table_columns import TableSettings, list_columns
from neural.data.table_examples import read_targets
from neural.data.table_preprocessing import fit_preprocessor
from neural.language.train_options import TrainOptions

TARGET_NAMES = ("label", "target", "y", "class", "outcome", "category")
"""Names of target columns, in order of preference."""
ID_NAMES = ("id", "uid", "uuid", "index")
"""Names of columns that identify rows; also names that end in `_id`."""
MAX_NUMBER_CLASSES, MIN_ROWS_PER_CLASS = 20, 5
"""Whole numbers are classes if there are few, and each has several rows on average."""
MAX_CATEGORIES, MAX_CATEGORY_SHARE = 50, 0.5
"""A column of words is left out if it has more categories, or more relative to the rows."""
BATCH_SIZE, MAX_EPOCHS, MAX_EXAMPLES = 32, 50, 64_000
"""A training sees at most MAX_EXAMPLES examples, but each at least twice."""
MIN_FILES_PER_CLASS = 2
MAX_IMAGE_SIDE, PATCH_SIDE, MEASURED_IMAGES = 64, 4, 20
TEXT_LENGTH = 256
"""Characters of a text that the network reads."""
TABLE_CERTAINTY, FOLDER_CERTAINTY = 0.8, 0.8


def guess_supervised(path: Path) -> ExperimentGuess | None:
    """A classification or regression; None for other data. TaskError for a broken table."""
    if path.is_file() and path.suffix.lower() in TABLE_SUFFIXES:
        return _guess_table(path)
    for suffixes, guess_folders in (
        (IMAGE_SUFFIXES, _guess_images),
        (TEXT_SUFFIXES, _guess_texts),
    ):
        folders = _find_classes(path, suffixes)
        if folders is not None:
            return guess_folders(path, folders)
    return None


def _find_classes(path: Path, suffixes: Sequence[str]) -> ClassFolders | None:
    """The folders per class; None unless there are several, each with several files."""
    if not path.is_dir() or not has_class_folders(path, suffixes):
        return None
    try:
        folders = find_class_folders(path, suffixes)
    except TaskError:  # the files are deeper
        return None
    counts = np.bincount(folders.train.labels, minlength=len(folders.classes))
    return folders if len(counts) > 1 and counts.min() >= MIN_FILES_PER_CLASS else None


@dataclass(frozen=True)
class _TableColumns:
    """Columns of a table by their use, as indices."""

    target: int
    id: int | None
    numbers: list[int]
    categories: list[int]
    dropped: list[int]
    has_missing: bool


def _guess_table(path: Path) -> ExperimentGuess:
    cells = read_table_file(path)
    columns = _assign_columns(cells)
    names = [_column_name(cells, column) for column in range(len(cells.names))]
    is_class = _has_classes(cells, columns.target)
    categorical = [*columns.categories, *([columns.target] if is_class else [])]
    table = {
        "target": names[columns.target],
        **({"id": names[columns.id]} if columns.id is not None else {}),
        **({"drop": tuple(names[column] for column in columns.dropped)} if columns.dropped else {}),
        **({"categorical": tuple(names[column] for column in categorical)} if categorical else {}),
        **({"impute": "median"} if columns.has_missing else {}),
        "standardize": True,
    }
    y, classes = read_targets(cells, columns.target, is_class=is_class)
    settings = TableSettings.model_validate(table)
    features = sorted([*columns.numbers, *columns.categories])
    examples = Examples(
        data_name=path.name,
        train={"y": y},
        table=UnfittedTable(cells, tuple(features), settings),
    )
    # the network has an input per category of the training rows, so the rows are split as later
    split = split_dataset(examples, None, TrainOptions().validation_split, 0.0, fold=None, seed=0)
    preprocessor, _ = fit_preprocessor(cells, features, settings, split[0])
    width = len(preprocessor.output_names)
    target_name = names[columns.target]
    reason = f"a table of {len(cells):,} rows: predicts `{target_name}`, " + (
        f"{len(classes)} classes ({list_columns(classes)})"
        if is_class
        else f"a number from {y.min():g} to {y.max():g}"
    )
    reasons = [
        reason,
        f"{len(columns.numbers)} columns of numbers and {len(columns.categories)} of categories "
        f"are {width} inputs",
    ]
    if columns.dropped:
        reasons.append(
            f"left out, because almost every row has another text: "
            f"{list_columns([str(names[column]) for column in columns.dropped])}"
        )
    program = _write_program(
        path,
        input_shape=f"{width},",
        layers=['Dense(64, activation="relu")', "Dropout(0.1)", 'Dense(32, activation="relu")'],
        class_count=len(classes) if is_class else None,
        example_count=len(cells),
    )
    return _create_guess(path, program, tuple(reasons), TABLE_CERTAINTY, table=table)


def _assign_columns(cells: TableCells) -> _TableColumns:
    """Decide the use of every column by its name and its cells."""
    by_name = {name.casefold(): column for column, name in reversed([*enumerate(cells.names)])}
    target = next((by_name[name] for name in TARGET_NAMES if name in by_name), None)
    target = len(cells.names) - 1 if target is None or not cells.has_header else target
    row_id, numbers, categories, dropped = None, list[int](), list[int](), list[int]()
    has_missing = False
    for column, name in enumerate(cells.names):
        if column == target:
            continue
        words = cells.read_words(column)
        known = [word for word in words if word]
        is_unique = len(set(words)) == len(words)
        if row_id is None and _is_id_name(name) and is_unique:
            row_id = column
        elif known and all(map(is_number, known)):
            numbers.append(column)
            has_missing |= len(known) < len(words)
        elif 1 < len(set(known)) <= min(MAX_CATEGORIES, MAX_CATEGORY_SHARE * len(words)):
            categories.append(column)
            has_missing |= len(known) < len(words)
        else:
            dropped.append(column)
    return _TableColumns(target, row_id, numbers, categories, dropped, has_missing)


def _column_name(cells: TableCells, column: int) -> str | int:
    """How `table` names a column: by its number if there is no header."""
    return cells.names[column] if cells.has_header else column + 1


def _is_id_name(name: str) -> bool:
    return name.casefold() in ID_NAMES or name.casefold().endswith("_id")


def _has_classes(cells: TableCells, target: int) -> bool:
    words = [word for word in cells.read_words(target) if word]
    if not all(map(is_number, words)):
        return True
    values = {float(word) for word in words}
    is_whole = all(value.is_integer() for value in values)
    is_few = len(values) <= min(MAX_NUMBER_CLASSES, len(words) / MIN_ROWS_PER_CLASS)
    return is_whole and is_few


def _guess_images(path: Path, folders: ClassFolders) -> ExperimentGuess:
    files = folders.train.files
    pillow = import_optional("PIL.Image", feature="reading images", install="pillow")
    sizes, modes = [], set()
    for file in files[:: max(1, len(files) // MEASURED_IMAGES)]:
        with pillow.open(file) as image:
            sizes.append(min(image.size))
            modes.add(image.mode)
    side = min(MAX_IMAGE_SIDE, max(PATCH_SIDE, int(statistics.median(sizes))))
    side -= side % PATCH_SIDE
    channels = 1 if modes <= {"1", "L"} else 3
    patches = (side // PATCH_SIDE) ** 2
    program = _write_program(
        path,
        input_shape=f"{side}, {side}, {channels}",
        layers=[
            f"Conv2D(64, kernel_size=({PATCH_SIDE}, {PATCH_SIDE}), strides={PATCH_SIDE})",
            f"Reshape(target_shape=({patches}, 64))",
            'TransformerEncoder(num_heads=4, d_model=64, dff=128, positional="learned") * 2',
            "GlobalAveragePooling1D()",
        ],
        class_count=len(folders.classes),
        example_count=len(files),
    )
    reasons = (
        f"{len(files):,} images in {len(folders.classes)} folders "
        f"({list_columns(folders.classes)}): a classification",
        f"images become {side} × {side} pixels, {patches} patches",
    )
    return _create_guess(path, program, reasons, FOLDER_CERTAINTY)


def _guess_texts(path: Path, folders: ClassFolders) -> ExperimentGuess:
    program = _write_program(
        path,
        input_shape=f"{TEXT_LENGTH},",
        layers=[
            "Embedding(input_dim=256, output_dim=64)",
            'TransformerEncoder(num_heads=4, d_model=64, dff=128, positional="learned") * 2',
            "GlobalAveragePooling1D()",
        ],
        class_count=len(folders.classes),
        example_count=len(folders.train.files),
    )
    reasons = (
        f"{len(folders.train.files):,} texts in {len(folders.classes)} folders "
        f"({list_columns(folders.classes)}): a classification",
        f"the network reads the first {TEXT_LENGTH} bytes of a text",
    )
    return _create_guess(path, program, reasons, FOLDER_CERTAINTY)


def _write_program(
    path: Path,
    *,
    input_shape: str,
    layers: Sequence[str],
    class_count: int | None,
    example_count: int,
) -> str:
    """A program in the layout of `neural fmt`; a `class_count` of None is a regression."""
    words = re.findall(r"[A-Za-z0-9]+", path.stem)
    name = "".join(word[0].upper() + word[1:] for word in words)
    name = name if name[:1].isalpha() else f"Network{name}"
    epochs = max(2, min(MAX_EPOCHS, MAX_EXAMPLES // example_count))
    output = "Dense(1)" if class_count is None else f'Output({class_count}, activation="softmax")'
    loss = "mse" if class_count is None else "sparse_categorical_crossentropy"
    layer_lines = "".join(f"    {layer}\n" for layer in [*layers, output])
    return f"""network {name} {{
  input: ({input_shape})
  layers:
{layer_lines}
  loss: "{loss}"
  optimizer: AdamW(learning_rate=0.001)
  train {{
    epochs: {epochs}
    batch_size: {BATCH_SIZE}
  }}
}}
"""


def _create_guess(
    path: Path, program: str, reasons: tuple[str, ...], certainty: float, **keys: object
) -> ExperimentGuess:
    settings = {"task": "supervised", "name": path.stem, "data": str(path), **keys}
    return ExperimentGuess({**settings, "network": program}, reasons, certainty)

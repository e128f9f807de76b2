"""Guess a supervised experiment for a table or for a folder per class, with a network for it.

Tables: the target is the column named like one (TARGET_NAMES), else the last. Words as targets, or
few different whole numbers, are classes; other numbers are a regression. Columns of words are
categories, unless almost every row has another word; then they are left out, and so are dates.
A few words among many numbers are an error, which names the first.
Overrides of the user (`table.target=price`) decide before all this. Folders per class: images become
patches, and texts characters, for a small transformer.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import Field

from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.core.settings import Settings, read_settings
from neural.data.class_folders import ClassFolders, find_class_folders, has_class_folders
from neural.data.dataset import split_dataset
from neural.data.source import Examples, UnfittedTable
from neural.data.sources.images import FORMATS as IMAGE_FORMATS
from neural.data.sources.images import SUFFIXES as IMAGE_SUFFIXES
from neural.data.sources.texts import SUFFIXES as TEXT_SUFFIXES
from neural.data.table_cells import (
    MAX_SHOWN_CELL,
    TableCells,
    has_decimal_comma,
    is_date,
    is_number,
    read_table_file,
)
from neural.data.table_cells import SUFFIXES as TABLE_SUFFIXES
from neural.data.table_columns import TableSettings, assign_columns, list_columns, suggest_key
from neural.data.table_examples import read_groups, read_targets
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
MAX_WORD_SHARE = 0.1
"""Words among so many numbers are taken for mistakes, not for categories."""
BATCH_SIZE, MAX_EPOCHS, MAX_EXAMPLES = 32, 50, 64_000
"""A training sees at most MAX_EXAMPLES examples, but each at least twice."""
MIN_FILES_PER_CLASS = 2
MAX_IMAGE_SIDE, PATCH_SIDE, MEASURED_IMAGES = 64, 4, 20
TEXT_LENGTH = 256
"""Characters of a text that the network reads."""
MIN_ROWS_WITH_TEST, TEST_SHARE = 200, 0.2
"""A table of so many rows or more gets test rows, for `neural evaluate`."""
TABLE_OVERRIDE = re.compile(r"\s*table\s*[.=]")
"""Start of an override of a table's keys."""
TABLE_CERTAINTY, FOLDER_CERTAINTY = 0.8, 0.8


def guess_supervised(path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess | None:
    """A classification or regression; None for other data.

    The guess for a table follows `overrides` of `table`. Raises TaskError for a broken table,
    SettingsError for a wrong override.
    """
    if path.is_file() and path.suffix.lower() in TABLE_SUFFIXES:
        used_overrides = tuple(text for text in overrides if TABLE_OVERRIDE.match(text))
        chosen = read_settings(_TableKeys, None, used_overrides).table
        return replace(_guess_table(path, chosen), used_overrides=used_overrides)
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


class _TableKeys(Settings):
    """The part of an experiment that the guess for a table follows."""

    table: TableSettings = Field(default_factory=TableSettings)


@dataclass(frozen=True)
class _TableColumns:
    """Columns of a table by their use, as indices."""

    target: int
    id: int | None
    group: int | None
    numbers: list[int]
    categories: list[int]
    dropped: dict[int, str]
    """Columns that are left out, with the reason."""
    has_missing: bool


def _guess_table(path: Path, chosen: TableSettings) -> ExperimentGuess:
    """The guess for a table; `chosen` has the keys that the user has set."""
    cells = read_table_file(path, chosen.named_columns())
    columns = _assign_columns(cells, chosen)
    names = [_column_name(cells, column) for column in range(len(cells.names))]
    target_name = names[columns.target]
    keeps_words = target_name in chosen.categorical
    is_class = keeps_words or _has_classes(cells, columns.target)
    categorical = [*columns.categories, *([columns.target] if is_class else [])]
    dropped = (*chosen.drop, *(names[column] for column in columns.dropped))
    is_set = chosen.model_fields_set
    impute = chosen.impute if "impute" in is_set else "median" if columns.has_missing else "none"
    table = {
        "target": target_name,
        **({"id": names[columns.id]} if columns.id is not None else {}),
        **({"group": names[columns.group]} if columns.group is not None else {}),
        **({"features": chosen.features} if chosen.features is not None else {}),
        **({"drop": dropped} if dropped else {}),
        **({"categorical": tuple(names[column] for column in categorical)} if categorical else {}),
        **({"impute": impute} if impute != "none" else {}),
        "standardize": chosen.standardize if "standardize" in is_set else True,
    }
    y, classes = read_targets(
        cells, columns.target, is_class=is_class, keep_missing_words=keeps_words
    )
    if is_class and len(classes) == 1:
        raise TaskError(
            f"{cells.data_name}: the target `{target_name}` is `{classes[0]}` in every row; a "
            "classifier needs two classes or more. `table.target` names another column"
        )
    settings = TableSettings.model_validate(table)
    features = assign_columns(cells, settings).features
    examples = Examples(
        data_name=path.name,
        train={"y": y},
        table=UnfittedTable(cells, features, settings),
        groups=read_groups(cells, assign_columns(cells, settings)),
    )
    has_test = len(cells) >= MIN_ROWS_WITH_TEST
    # the network has an input per category of the training rows, so the rows are split as later
    split = split_dataset(
        examples,
        y if has_test and is_class else None,
        TrainOptions().validation_split,
        TEST_SHARE if has_test else 0.0,
        fold=None,
        seed=0,
    )
    preprocessor, _ = fit_preprocessor(cells, features, settings, split[0])
    width = len(preprocessor.output_names)
    reason = f"a table of {len(cells):,} rows: predicts `{target_name}`, " + (
        f"{len(classes)} classes ({list_columns(classes)})"
        if is_class
        else f"a number from {y.min():g} to {y.max():g}"
    )
    reasons = [
        reason,
        _describe_inputs(len(columns.numbers), len(columns.categories), width),
        *cells.notes,
    ]
    for cause in dict.fromkeys(columns.dropped.values()):
        left_out = [
            str(names[column]) for column in columns.dropped if columns.dropped[column] == cause
        ]
        reasons.append(f"left out, because {cause}: {list_columns(left_out)}")
    if has_test:
        reasons.append(f"{TEST_SHARE:.0%} of the rows are test rows, for `neural evaluate`")
    keys: dict[str, object] = (
        {"table": table} if is_class else {"table": table, "standardize_target": True}
    )
    program = _write_program(
        path,
        input_shape=f"{width},",
        layers=['Dense(64, activation="relu")', "Dropout(0.1)", 'Dense(32, activation="relu")'],
        class_count=len(classes) if is_class else None,
        example_count=len(cells),
    )
    keys |= {"test": TEST_SHARE} if has_test else {}
    keys |= {"stratify": True} if has_test and is_class else {}
    return _create_guess(path, program, tuple(reasons), TABLE_CERTAINTY, **keys)


def _describe_inputs(number_count: int, category_count: int, width: int) -> str:
    """`4 columns of numbers and 1 of categories are 7 inputs`."""
    counts = ((number_count, "numbers"), (category_count, "categories"))
    parts = [(count, f"of {kind}") for count, kind in counts if count]
    (first_count, first_kind), *others = parts
    noun = "column" if first_count == 1 else "columns"
    columns = " and ".join(
        [f"{first_count} {noun} {first_kind}", *(f"{count} {kind}" for count, kind in others)]
    )
    verb = "is" if number_count + category_count == 1 else "are"
    return f"{columns} {verb} {width} input{'s' * (width != 1)}"


def _assign_columns(cells: TableCells, chosen: TableSettings) -> _TableColumns:
    """Decide the use of every column: as `chosen` says, else by its name and its cells."""
    if chosen.target is None:
        target = _column_name(cells, _guess_target(cells, chosen))
        chosen = chosen.model_copy(update={"target": target})
    roles = assign_columns(cells, chosen)
    assert roles.target is not None
    row_id, numbers, categories = roles.id, list[int](), list[int]()
    dropped: dict[int, str] = {}
    has_missing = False
    for column in roles.features:
        name, words = cells.names[column], cells.read_words(column)
        known = [word for word in words if word]
        is_unique = len(set(words)) == len(words)
        is_category = _column_name(cells, column) in chosen.categorical
        cause = None if is_category else _find_drop_cause(known, len(words))
        if not is_category and chosen.features is None:
            _refuse_words_among_numbers(cells, column, words)
            if row_id is None and _is_id_name(name) and is_unique:
                row_id = column
                continue
            if cause is not None:
                dropped[column] = cause
                continue
        # a feature that should be left out stays among the numbers: its error says what to do
        is_category = is_category or (cause is None and not all(map(is_number, known)))
        (categories if is_category else numbers).append(column)
        has_missing |= len(known) < len(words)
    if not numbers and not categories:
        raise TaskError(
            f"{cells.data_name}: no column is left for the inputs; "
            + "; ".join(
                f"left out, because {cause}: `{cells.names[column]}`"
                for column, cause in dropped.items()
            )
        )
    return _TableColumns(
        roles.target, row_id, roles.group, numbers, categories, dropped, has_missing
    )


def _guess_target(cells: TableCells, chosen: TableSettings) -> int:
    """The column with the first of TARGET_NAMES, else the last; none that has another use."""
    used = {chosen.id, chosen.group, *chosen.drop, *(chosen.features or ())}
    candidates = [
        column for column in range(len(cells.names)) if _column_name(cells, column) not in used
    ]
    if not candidates:
        raise TaskError(
            f"{cells.data_name}: no column is left for the target; set `table.target` to its name"
        )
    by_name = {cells.names[column].casefold(): column for column in reversed(candidates)}
    target = next((by_name[name] for name in TARGET_NAMES if name in by_name), None)
    return candidates[-1] if target is None or not cells.has_header else target


def _refuse_words_among_numbers(cells: TableCells, column: int, words: Sequence[str]) -> None:
    """TaskError if almost all cells are numbers, of many values, and a few are words."""
    rows = [row for row, word in enumerate(words) if word and not is_number(word)]
    numbers = [word for word in words if word and is_number(word)]
    known_count = len(rows) + len(numbers)
    if (
        rows
        and len(rows) <= MAX_WORD_SHARE * known_count
        and len(set(numbers)) > MAX_NUMBER_CLASSES
    ):
        word, name = words[rows[0]], cells.names[column]
        raise TaskError(
            f"{cells.locate(rows[0], column)}: {len(rows)} of {known_count:,} cells "
            f"{'is' if len(rows) == 1 else 'are'} not a number (`{word[:MAX_SHOWN_CELL]}`); write a "
            f"number, leave the cell empty, or choose: {suggest_key(name, word)}"
        )


def _find_drop_cause(known: Sequence[str], row_count: int) -> str | None:
    """Why a column is left out; None if it is one of numbers or categories.

    `known` are its cells that are not missing.
    """
    if not known:
        return "all cells are empty"
    if all(map(is_number, known)):
        return None
    if all(map(is_date, known)):
        return "the cells are dates"
    if all(has_decimal_comma(word) or is_number(word) for word in known):
        return "it looks like a number with a decimal comma"
    category_count = len(set(known))
    if category_count == 1:
        return "all rows have the same text"
    if category_count > MAX_CATEGORY_SHARE * row_count:
        return "almost every row has another text"
    return f"it has {category_count:,} different texts" if category_count > MAX_CATEGORIES else None


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
    from PIL import Image

    sizes, modes = [], set()
    for file in files[:: max(1, len(files) // MEASURED_IMAGES)]:
        try:
            with Image.open(file, formats=IMAGE_FORMATS) as image:
                sizes.append(min(image.size))
                modes.add(image.mode)
        except Exception:  # decoders raise many types on a broken image
            raise TaskError(
                f"{path}: {file.parent.name}/{file.name} cannot be read as an image"
            ) from None
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

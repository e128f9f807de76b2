"""Class names: labels that are words become class numbers, in the sorted order of the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.array_conversion import format_names

if TYPE_CHECKING:
    from neural.data.source import Arrays


def encode_words(words: Sequence[str], classes: Sequence[str]) -> tuple[np.ndarray, int | None]:
    """Class number of each word, -1 for another word; and the index of the first such word, or None.

    A word that is no class itself stands for the one class of the same value: a file may have `1.0`
    or `True` where an array has 1.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    numbers_by_value: dict[Decimal, list[int]] = {}
    for number, name in enumerate(classes):
        if (value := _parse_value(name)) is not None:
            numbers_by_value.setdefault(value, []).append(number)
    for word in set(words) - set(classes):
        value = _parse_value(word)
        same = [] if value is None else numbers_by_value.get(value, [])
        numbers[word] = same[0] if len(same) == 1 else -1
    encoded = np.array([numbers[word] for word in words], dtype=np.int64)
    unknown = np.flatnonzero(encoded < 0)
    return encoded, int(unknown[0]) if len(unknown) else None


def encode_label_arrays(
    train: Arrays, valid: Arrays | None, data_name: str, classes: Sequence[str] = ()
) -> tuple[Arrays, Arrays | None, tuple[str, ...]]:
    """The arrays with words in `y` as class numbers, and the class names; () if `y` has numbers.

    `classes` are the names if they are known already, as for a test file. Else they are the words
    of the training examples. Raises TaskError for other words.
    """
    words = _read_words(train, classes)
    if words is None:
        return train, valid, tuple(classes)
    class_names = tuple(classes) or tuple(sorted(set(words)))
    encoded_valid = valid
    if valid is not None:
        encoded_valid = _encode_array(valid, class_names, f"{data_name}: `y_valid`")
    return _encode_array(train, class_names, f"{data_name}: `y`"), encoded_valid, class_names


def describe_unknown_class(word: str, classes: Sequence[str]) -> str:
    """The end of a message about a word that is not a class."""
    hint = suggest_name(word, classes) or f"the classes are {format_names(classes)}"
    return f"`{word}` is not a class of the training data; {hint}"


def _parse_value(word: str) -> Decimal | None:
    """The value of a number, or 1 for `true` and 0 for `false`; None for other words.

    Fractions are rounded to seven digits: .1 in single precision is 0.10000000149 in a file.
    """
    truth = {"true": Decimal(1), "false": Decimal(0)}.get(word.lower())
    try:
        value = Decimal(word) if truth is None else truth
    except InvalidOperation:
        return None
    if not value.is_finite():
        return None
    return value if value == value.to_integral_value() else Decimal(f"{value:.7g}")


def _encode_array(arrays: Arrays, classes: Sequence[str], name: str) -> Mapping[str, np.ndarray]:
    words = _read_words(arrays, classes)
    if words is None:
        raise TaskError(f"{name} holds numbers, but the training labels are words; use the same")
    numbers, unknown = encode_words(words, classes)
    if unknown is not None:
        raise TaskError(f"{name} at [{unknown}]: {describe_unknown_class(words[unknown], classes)}")
    return {**arrays, "y": numbers}


def _read_words(arrays: Arrays, classes: Sequence[str] = ()) -> list[str] | None:
    """The labels if there is a word for every example; None if they are numbers, or missing.

    Numbers are words if all `classes` are named by numbers: then they are names, not positions.
    """
    y = arrays.get("y")
    if y is None or not y.ndim or y.size != len(y):
        return None
    values = y.reshape(-1).tolist()
    if y.dtype.kind == "S":
        return [value.decode("utf-8", "replace").strip() for value in values]
    if y.dtype.kind in "UT" or (
        y.dtype.kind == "O" and values and all(isinstance(value, str) for value in values)
    ):
        return [str(value).strip() for value in values]
    if y.dtype.kind in "biuf" and classes and None not in map(_parse_value, classes):
        return list(map(str, values))
    return None

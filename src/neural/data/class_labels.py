"""Class names: labels that are words become class numbers, in the sorted order of the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.array_conversion import format_names

if TYPE_CHECKING:
    from neural.data.source import Arrays


def encode_words(words: Sequence[str], classes: Sequence[str]) -> tuple[np.ndarray, int | None]:
    """Class number of each word, and the index of the first word that is not a class, or None."""
    numbers = {name: number for number, name in enumerate(classes)}
    unknown = next((index for index, word in enumerate(words) if word not in numbers), None)
    return np.array([numbers.get(word, -1) for word in words], dtype=np.int64), unknown


def encode_label_arrays(
    train: Arrays, valid: Arrays | None, data_name: str, classes: Sequence[str] = ()
) -> tuple[Arrays, Arrays | None, tuple[str, ...]]:
    """The arrays with words in `y` as class numbers, and the class names; () if `y` has numbers.

    `classes` are the names if they are known already, as for a test file. Else they are the words
    of the training examples. Raises TaskError for other words.
    """
    words = _read_words(train)
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


def _encode_array(arrays: Arrays, classes: Sequence[str], name: str) -> Mapping[str, np.ndarray]:
    words = _read_words(arrays)
    if words is None:
        raise TaskError(f"{name} holds numbers, but the training labels are words; use the same")
    numbers, unknown = encode_words(words, classes)
    if unknown is not None:
        raise TaskError(f"{name} at [{unknown}]: {describe_unknown_class(words[unknown], classes)}")
    return {**arrays, "y": numbers}


def _read_words(arrays: Arrays) -> list[str] | None:
    """The labels if there is a word for every example; None if they are numbers, or missing."""
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
    return None

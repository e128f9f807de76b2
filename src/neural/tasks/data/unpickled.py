"""Plain data out of a pickle without running anything in it: containers, numbers, texts, and numpy's arrays.

A pickle is a program: it may name any function of any module and have it called. Here only the few names that numpy
writes for an array are known, and each stands for something of ours that keeps what it is given; any other name is
refused before anything is called. The program is read through before it runs, and refused where it does what no pickle
of plain data does: a few steps can ask for 30 gigabytes, or for a key that takes years to hash.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from neural.tasks.task import TaskError


class _Kind:
    """In place of `numpy.dtype`: remembers which."""

    def __init__(self, name: str | bytes, *_: Any) -> None:
        self.name, self.order = name.decode("ascii") if isinstance(name, bytes) else str(name), "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def dtype(self) -> np.dtype[Any]:
        """Of numbers only."""
        found = np.dtype(self.name).newbyteorder("=" if self.order == "|" else self.order)   # type: ignore[arg-type]
        if found.kind not in "biuf":
            raise ValueError(f"an array of {found}")
        return found


class _Array:
    """In place of `numpy.ndarray`: remembers the bytes and what they mean."""

    def __init__(self, *_: Any) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, columns_first, raw = state
        order = "F" if columns_first else "C"
        self.array = np.frombuffer(bytes(raw), kind.dtype()).reshape(shape, order=order)


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    """In place of `codecs.encode`, by which Python 3 writes bytes for Python 2."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes in the encoding {encoding}")
    return text.encode("latin1")


KNOWN = {
    "numpy.core.multiarray._reconstruct": _Array, "numpy._core.multiarray._reconstruct": _Array,
    "numpy.ndarray": _Array, "numpy.dtype": _Kind, "_codecs.encode": _encoded,
}  # fmt: skip

SIMPLE = ("EMPTY_DICT", "DICT", "EMPTY_LIST", "LIST", "GLOBAL", "STACK_GLOBAL", "REDUCE", "STRING", "BINSTRING",
          "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
          "BINBYTES8")  # fmt: skip
"""Steps that make something new which is no tuple."""
REFUSED = ("DUP", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "FROZENSET", "EMPTY_SET", "ADDITEMS", "PERSID", "BINPERSID",
           "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER", "BYTEARRAY8")  # fmt: skip
"""Steps that dictionaries, lists, numbers, texts and arrays do without."""


def _look_through(content: bytes) -> None:
    """Refuse a pickle that is too clever to be data."""
    simple: set[int] = set()   # what may stand in it twice, by the number under which it is remembered
    before, kept = "", 0
    for step, argument, _ in pickletools.genops(content):
        if step.name in REFUSED:
            raise ValueError(f"it does what plain data does not ({step.name.lower()})")
        if step.name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            number = kept if argument is None else int(argument)
            kept += 1
            if not 0 <= number <= len(content):   # the reader makes room for as many
                raise ValueError(f"it remembers a value under the number {number}")
            (simple.add if before in SIMPLE else simple.discard)(number)
        elif step.name in ("GET", "BINGET", "LONG_BINGET") and argument is not None and int(argument) not in simple:
            raise ValueError("a tuple stands in it twice")   # of tuples of themselves comes a key without an end
        elif step.name not in ("FRAME", "PROTO"):
            before = step.name


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return KNOWN[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(f"it names `{module}.{name}`, which is no plain data") from None


def unpickled(content: bytes, where: str) -> dict[str, Any]:
    """The dictionary in a pickle, with texts as keys; TaskError where it holds anything but plain data."""
    try:
        _look_through(content)
        found = _Reader(io.BytesIO(content), encoding="bytes").load()
    except Exception as problem:   # a broken pickle may raise anything
        raise TaskError(f"{where} cannot be read as plain data: {problem or type(problem).__name__}") from None
    if not isinstance(found, dict):
        raise TaskError(f"{where} holds no dictionary")
    named = {key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key): one for key, one in found.items()}
    return {key: one.array if isinstance(one, _Array) else one for key, one in named.items()}

"""Safe unpickling of plain data: containers, numbers, strings and numpy arrays.

A pickle is a program that may import and call any function. Two defences:

1. Only the globals that numpy writes for an array are allowed, and each is replaced by a stub that
   stores its arguments. Any other name is refused before anything is called.
2. All opcodes are checked before the pickle runs. Opcodes that plain data does not need are
   refused: a few of them can allocate 30 GB, or build a key that takes years to hash.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from neural.core.errors import TaskError


class _DtypeStub:
    """Replaces `numpy.dtype`: stores its name and byte order."""

    def __init__(self, name: str | bytes, *_: Any) -> None:
        self.name = name.decode("ascii") if isinstance(name, bytes) else str(name)
        self.byte_order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        self.byte_order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def to_dtype(self) -> np.dtype[Any]:
        """The numpy dtype. Raises ValueError unless it is numeric."""
        order: Any = "=" if self.byte_order == "|" else self.byte_order
        dtype = np.dtype(self.name).newbyteorder(order)
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of {dtype}")
        return dtype


class _ArrayStub:
    """Replaces `numpy.ndarray`: builds the array from its bytes."""

    def __init__(self, *_: Any) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        order = "F" if is_fortran else "C"
        self.array = np.frombuffer(bytes(raw), dtype.to_dtype()).reshape(shape, order=order)


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """Replaces `codecs.encode`, by which Python 3 writes bytes in protocol 2."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"it holds bytes in the encoding {encoding}")
    return text.encode("latin1")


ALLOWED_GLOBALS = {
    "numpy.core.multiarray._reconstruct": _ArrayStub,
    "numpy._core.multiarray._reconstruct": _ArrayStub,
    "numpy.ndarray": _ArrayStub,
    "numpy.dtype": _DtypeStub,
    "_codecs.encode": _encode_latin1,
}
"""Replacements for the globals (functions and classes) that a pickle may name."""

NON_TUPLE_OPCODES = (
    "EMPTY_DICT",
    "DICT",
    "EMPTY_LIST",
    "LIST",
    "GLOBAL",
    "STACK_GLOBAL",
    "REDUCE",
    "STRING",
    "BINSTRING",
    "SHORT_BINSTRING",
    "UNICODE",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
    "BINBYTES",
    "SHORT_BINBYTES",
    "BINBYTES8",
)
"""Opcodes that create an object other than a tuple. Only such objects may be referenced twice: see
`_check_opcodes`."""
REFUSED_OPCODES = (
    "DUP",
    "INST",
    "OBJ",
    "NEWOBJ",
    "NEWOBJ_EX",
    "FROZENSET",
    "EMPTY_SET",
    "ADDITEMS",
    "PERSID",
    "BINPERSID",
    "EXT1",
    "EXT2",
    "EXT4",
    "NEXT_BUFFER",
    "READONLY_BUFFER",
    "BYTEARRAY8",
)
"""Opcodes that dictionaries, lists, numbers, strings and arrays do not need."""


def _check_opcodes(content: bytes) -> None:
    """Raise ValueError if a pickle does more than build plain data."""
    reusable: set[int] = set()  # memo indices of objects that may be referenced twice
    previous_opcode, memo_size = "", 0
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name in REFUSED_OPCODES:
            raise ValueError(f"plain data does not use the opcode {opcode.name}")
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo_index = memo_size if argument is None else int(argument)
            memo_size += 1
            # The unpickler allocates a memo of this size.
            if not 0 <= memo_index <= len(content):
                raise ValueError(f"its memo index {memo_index} is out of range")
            (reusable.add if previous_opcode in NON_TUPLE_OPCODES else reusable.discard)(memo_index)
        elif (
            opcode.name in ("GET", "BINGET", "LONG_BINGET")
            and argument is not None
            and int(argument) not in reusable
        ):
            # Tuples of repeated tuples grow exponentially, and so does the time to hash them.
            raise ValueError("it references a tuple twice")
        elif opcode.name not in ("FRAME", "PROTO"):
            previous_opcode = opcode.name


class _PlainUnpickler(pickle.Unpickler):
    """Unpickler that resolves only ALLOWED_GLOBALS."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED_GLOBALS[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it names `{module}.{name}`, which is not plain data"
            ) from None


def load_plain_pickle(content: bytes, data_name: str) -> dict[str, Any]:
    """The dictionary in a pickle, with string keys. Raises TaskError unless it is plain data.

    `data_name` is that of the file in messages.
    """
    try:
        _check_opcodes(content)
        loaded = _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a broken pickle raises many types
        raise TaskError(
            f"{data_name} cannot be read as plain data: {error or type(error).__name__}"
        ) from None
    if not isinstance(loaded, dict):
        raise TaskError(f"{data_name} does not hold a dictionary")
    by_string_key = {
        key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key): value
        for key, value in loaded.items()
    }
    return {
        key: value.array if isinstance(value, _ArrayStub) else value
        for key, value in by_string_key.items()
    }

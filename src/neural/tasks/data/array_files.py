"""Arrays out of files as numpy saves them, whoever wrote them: nothing is unpickled, and nothing is made of a header's
word alone. What an array takes must lie in the file before there is memory for it.

    arrays_in(Path("data.npz"))    all arrays by name
    array_in(Path("x.npy"))        one array; mapped(…) leaves it on the disk
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.lib import format as npy

from neural.tasks.task import TaskError

Made = TypeVar("Made")
ROOM = 1 << 28
"""Bytes that may come out of a packed file however small it is; a larger one may hold `TIMES` its size."""
TIMES = 100
"""Deflate packs zeros 1,000 times smaller, measured numbers a few times."""
KINDS = "biufcUSMm"
"""Numbers, texts and times: what a file can hold without naming a class."""
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The two ways of numpy."""


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file; TaskError says why it cannot be read."""
    return _read(path, _members)


def array_in(path: Path) -> np.ndarray:
    """The array of an .npy file; TaskError says why it cannot be read."""
    return _read(path, lambda file: _array(file, path.stat().st_size, "it"))


def mapped(path: Path) -> np.ndarray:
    """The same, read from the disk as it is needed."""
    return _read(path, lambda file: _map(file, path))


def is_archive(path: Path) -> bool:
    """Whether a file holds several arrays, whatever it is called."""
    return _read(path, lambda file: file.read(2) == b"PK")


def _read(path: Path, how: Callable[[IO[bytes]], Made]) -> Made:
    try:
        with path.open("rb") as file:
            return how(file)
    except Exception as problem:   # a broken file makes the libraries raise anything; all of it is about the file
        raise TaskError(f"{path.name} cannot be read: {_reason(problem)}") from None


def _reason(problem: Exception) -> str:
    """In words for the owner of the file."""
    if isinstance(problem, MemoryError):
        return "there is not enough memory for it"
    return str(problem).strip().split("\n")[0] or type(problem).__name__


def _members(file: IO[bytes]) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        inside, size = archive.infolist(), file.seek(0, 2)
        unpacked = sum(one.file_size for one in inside)
        if unpacked > max(ROOM, TIMES * size):
            raise ValueError(f"it says that it holds {unpacked:,} bytes in {size:,}; save it unpacked, by numpy.savez")
        found = {}
        for one in inside:
            if one.compress_type not in PACKED:
                raise ValueError(f"{one.filename} is packed in a way that numpy does not use")
            with archive.open(one) as member:
                found[one.filename.removesuffix(".npy")] = _array(member, one.file_size, f"`{one.filename}`")
        return found


def _header(file: IO[bytes], size: int, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type, where the file is long enough for them."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has version {version[0]}.{version[1]} of numpy's format; save plain numbers")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, columns_first, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects; save plain numbers (an array whose dtype is not object)")
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"{name} is an array of {dtype}; save plain numbers")
    if any(one < 0 for one in shape):
        raise ValueError(f"{name} says that its shape is {shape}")
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed > there:
        raise ValueError(f"{name} says that its shape is {shape}, which takes {needed:,} bytes; {there:,} are there")
    return shape, columns_first, dtype


def _array(file: IO[bytes], size: int, name: str) -> np.ndarray:
    shape, columns_first, dtype = _header(file, size, name)
    made = np.empty(math.prod(shape), dtype)
    left = made.view(np.uint8).data if made.size else memoryview(b"")
    while left:
        if not (count := file.readinto(left)):   # type: ignore[attr-defined]  # both kinds of files have it
            raise EOFError(f"{name} breaks off")
        left = left[count:]
    return made.reshape(shape, order="F" if columns_first else "C")


def _map(file: IO[bytes], path: Path) -> np.ndarray:
    shape, columns_first, dtype = _header(file, path.stat().st_size, "it")
    if not math.prod(shape):   # no system maps nothing
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", file.tell(), shape, "F" if columns_first else "C")

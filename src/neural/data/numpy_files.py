"""Safe reading of `.npz` and `.npy` files from untrusted sources.

Nothing is unpickled. A header is not trusted: the file must have all bytes of an array before
memory is allocated for the array. `name` is that of the array in messages.

    load_npz(Path("data.npz"))    all arrays by name
    load_npy(Path("x.npy"))       one array; map_npy(…) memory-maps it
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.lib import format as npy

from neural.core.errors import TaskError
from neural.core.files import open_ordinary_file

Result = TypeVar("Result")
MAX_UNPACKED_BYTES = 1 << 28
MAX_UNPACKED_RATIO = 100
"""An .npz may unpack to MAX_UNPACKED_BYTES or to its size times the ratio, whichever is larger;
beyond that it counts as a decompression bomb. Deflate makes zeros 1,000 times smaller, measured
numbers only a few times."""
ALLOWED_DTYPE_KINDS = "biufcUSMm"
"""Numbers, strings and times: dtypes that need no Python objects."""
ALLOWED_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compression methods of `numpy.savez` and `numpy.savez_compressed`."""


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file by name. Raises TaskError if it cannot be read."""
    return _read_file(path, _read_members)


def load_npy(path: Path) -> np.ndarray:
    """The array of an .npy file. Raises TaskError if it cannot be read."""
    return _read_file(path, lambda file: _read_array(file, path.stat().st_size, "it"))


def map_npy(path: Path) -> np.ndarray:
    """The array of an .npy file, memory-mapped."""
    return _read_file(path, lambda file: _map_array(file, path))


def is_archive(path: Path) -> bool:
    """Whether a file is a zip archive such as .npz, whatever its suffix."""
    return _read_file(path, lambda file: file.read(2) == b"PK")


def _read_file(path: Path, read: Callable[[IO[bytes]], Result]) -> Result:
    """Open a file and return what `read` returns for it; any error becomes a TaskError."""
    try:
        with open_ordinary_file(path) as file:
            return read(file)
    except Exception as error:  # zipfile and numpy raise many types on a broken file
        raise TaskError(f"{path.name} cannot be read: {_error_reason(error)}") from None


def _error_reason(error: Exception) -> str:
    """Short cause of an error, for the message."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    return str(error).strip().split("\n")[0] or type(error).__name__


def _read_members(file: IO[bytes]) -> dict[str, np.ndarray]:
    """All arrays of a zip archive. Raises ValueError if it unpacks to too many bytes."""
    with zipfile.ZipFile(file) as archive:
        members, size = archive.infolist(), file.seek(0, 2)
        unpacked_size = sum(member.file_size for member in members)
        if unpacked_size > max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * size):
            raise ValueError(
                f"it claims to hold {unpacked_size:,} bytes in {size:,}; "
                "save it uncompressed with numpy.savez"
            )
        arrays = {}
        for member in members:
            if member.compress_type not in ALLOWED_COMPRESSIONS:
                raise ValueError(f"{member.filename} uses a compression that numpy does not use")
            with archive.open(member) as stream:
                arrays[member.filename.removesuffix(".npy")] = _read_array(
                    stream, member.file_size, f"`{member.filename}`"
                )
        return arrays


def _read_header(
    file: IO[bytes], size: int, name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, is_fortran, dtype) of an array.

    Raises ValueError if the file, of `size` bytes, is too short for the array.
    """
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(
            f"{name} has version {version[0]}.{version[1]} of the .npy format; save plain numbers"
        )
    read_array_header = (
        npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_array_header(file)
    if dtype.hasobject:
        raise ValueError(
            "it holds Python objects, which may run code when they are read; save numbers as "
            "numbers, and words with `y.astype(str)`"
        )
    if dtype.kind not in ALLOWED_DTYPE_KINDS or not dtype.itemsize:
        raise ValueError(f"{name} is an array of {dtype}; save plain numbers")
    if any(dim < 0 for dim in shape):
        raise ValueError(f"{name} claims the shape {shape}")
    needed, available = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed > available:
        raise ValueError(
            f"{name} claims the shape {shape}, which takes {needed:,} bytes; "
            f"the file has {available:,}"
        )
    return shape, is_fortran, dtype


def _read_array(file: IO[bytes], size: int, name: str) -> np.ndarray:
    """Read an array from an open .npy file or zip member of `size` bytes."""
    shape, is_fortran, dtype = _read_header(file, size, name)
    array = np.empty(math.prod(shape), dtype)
    unfilled = array.view(np.uint8).data if array.size else memoryview(b"")
    while unfilled:
        # Plain files and zip members both have readinto.
        if not (count := file.readinto(unfilled)):  # type: ignore[attr-defined]
            raise EOFError(f"{name} is truncated")
        unfilled = unfilled[count:]
    return array.reshape(shape, order="F" if is_fortran else "C")


def _map_array(file: IO[bytes], path: Path) -> np.ndarray:
    """Memory-map the array of an open .npy file, read-only."""
    shape, is_fortran, dtype = _read_header(file, path.stat().st_size, "it")
    if not math.prod(shape):  # an empty range cannot be mapped
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", file.tell(), shape, "F" if is_fortran else "C")

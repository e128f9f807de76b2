"""The native library: kernels compiled from C++, called through ctypes.

    forward = NativeFunction("localized_forward", "ppp iii f")
    if native_available():
        forward(q.data_ptr(), k.data_ptr(), out.data_ptr(), rows, width, reach, 0.125)

Each kernel is compiled once per instruction set (a level); the best one that the processor runs is
used. `NEURAL_KERNELS` selects another level, or `off`. Nothing here imports torch. Kernels run on
the threads of torch's OpenMP runtime after `connect_torch_threads()`; before that, on one thread.

The library is beside this file. `NEURAL_NATIVE_LIBRARY` names another file, for example one built
with sanitizers.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from neural.core.errors import NeuralError

LEVELS = ("baseline", "avx2", "avx512", "avx512_vnni")
"""Instruction sets, from the slowest to the fastest; the order of the bits in levels.cpp."""
LIBRARY_NAMES = ("libneural_kernels.so", "libneural_kernels.dylib", "libneural_kernels.dll")
ARGUMENT_TYPES = {
    "p": ctypes.c_void_p,  # address of an array: `tensor.data_ptr()`, `array.ctypes.data`
    "i": ctypes.c_int64,
    "f": ctypes.c_float,
}
_disabled_depth = 0
"""Number of nested `no_kernels()` blocks that are active; kernels run only at 0."""
_forced_level: str | None = None
"""Level of the innermost `force_level` block."""


class NativeLibraryError(NeuralError, RuntimeError):
    """`NEURAL_KERNELS` or `NEURAL_NATIVE_LIBRARY` asks for something that is not there."""


def find_library() -> Path | None:
    """The file of the library; None if the package was built without a compiler."""
    chosen = os.environ.get("NEURAL_NATIVE_LIBRARY")
    if chosen:
        if not Path(chosen).is_file():
            raise NativeLibraryError(f"NEURAL_NATIVE_LIBRARY: there is no file {chosen}")
        return Path(chosen)
    paths = [Path(__file__).parent / name for name in LIBRARY_NAMES]
    return next((path for path in paths if path.is_file()), None)


@cache
def load_library() -> ctypes.CDLL | None:
    """The library; None if there is none. NativeLibraryError if it cannot be loaded."""
    path = find_library()
    try:
        return ctypes.CDLL(str(path)) if path else None
    except OSError as error:
        raise NativeLibraryError(
            f"{path} cannot be loaded: {error}; NEURAL_KERNELS=off does without it"
        ) from None


@cache
def available_levels() -> tuple[str, ...]:
    """Levels that the library has and this processor runs, slowest first; () without a library."""
    library = load_library()
    if library is None:
        return ()
    bits = library.neural_supported_levels()
    return tuple(level for index, level in enumerate(LEVELS) if bits >> index & 1)


@cache
def _configured_level() -> str | None:
    """Level chosen by `NEURAL_KERNELS`, by default the best; None if kernels are off or missing."""
    setting = os.environ.get("NEURAL_KERNELS", "on")
    if setting == "off":  # also if the library cannot be loaded
        return None
    levels = available_levels()
    if not levels:
        return None
    if setting == "on":
        return levels[-1]
    if setting not in levels:
        raise NativeLibraryError(
            f"NEURAL_KERNELS={setting}: this machine has on, off, {', '.join(levels)}"
        )
    return setting


def current_level() -> str | None:
    """The level that kernels use now; None if plain torch and NumPy code runs instead."""
    if _disabled_depth:
        return None
    return _forced_level or _configured_level()


def native_available() -> bool:
    """Whether kernels run: the library is there, and neither `off` nor `no_kernels()` is active."""
    return current_level() is not None


@contextmanager
def no_kernels() -> Iterator[None]:
    """Run plain torch and NumPy code instead of kernels inside this block."""
    global _disabled_depth
    _disabled_depth += 1
    try:
        yield
    finally:
        _disabled_depth -= 1


@contextmanager
def force_level(level: str) -> Iterator[None]:
    """Use the code of another instruction set inside this block; for tests and benchmarks."""
    global _forced_level
    if level not in available_levels():
        raise NativeLibraryError(f"{level} is not among {', '.join(available_levels())}")
    previous, _forced_level = _forced_level, level
    try:
        yield
    finally:
        _forced_level = previous


class NativeFunction:
    """A function of the library, at the current level.

    `arguments` has a letter per argument: p address, i integer, f float. Spaces are ignored.
    """

    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self._types = [ARGUMENT_TYPES[letter] for letter in arguments.replace(" ", "")]
        self._by_level: dict[str, Any] = {}

    def __call__(self, *arguments: Any) -> None:
        level = current_level()
        function = self._by_level.get(level) if level else None
        if function is None:
            function = self._find(level)
        function(*arguments)

    def _find(self, level: str | None) -> Any:
        library = load_library()
        if level is None or library is None:
            raise NativeLibraryError(f"{self.name}: kernels are off or not built")
        # A kernel that gains nothing from a level has no code for it: that of a lower one is used.
        lower_levels = LEVELS[: LEVELS.index(level) + 1][::-1]
        symbols = [f"{self.name}_{lower}" for lower in lower_levels]
        symbol = next((symbol for symbol in symbols if hasattr(library, symbol)), None)
        if symbol is None:
            raise NativeLibraryError(f"the native library has no function {self.name}")
        function = getattr(library, symbol)
        function.argtypes, function.restype = self._types, None
        self._by_level[level] = function
        return function


@cache
def connect_torch_threads() -> bool:
    """Let kernels run on the threads of torch, which must be imported. False if that fails.

    The functions are looked up in `libtorch_cpu` and the libraries that it depends on: exactly the
    OpenMP runtime that torch uses, under whatever file name its wheel carries it.
    """
    library, torch = load_library(), sys.modules.get("torch")
    if library is None or torch is None or torch.__file__ is None:
        return False
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    for file_name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        path = Path(torch.__file__).parent / "lib" / file_name
        try:
            runtime = ctypes.CDLL(str(path))
            addresses = [ctypes.cast(getattr(runtime, name), ctypes.c_void_p) for name in names]
        except (OSError, AttributeError):
            continue
        library.neural_connect_threads.argtypes = [ctypes.c_void_p] * 3
        library.neural_connect_threads.restype = None
        library.neural_connect_threads(*addresses)
        return True
    return False

"""break_files.c, built and loaded: file operations below a folder that fail, or kill, at a chosen one."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
HOW = {"kill": 1, "half": 2, "full": 3, "fail": 4, "once": 5}
"""As the library counts them."""


def built(folder: Path) -> Path:
    """The library, compiled into a folder."""
    library = folder / "break_files.so"
    call = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "break_files.c"), "-ldl"]
    subprocess.run(call, check=True)
    return library


def loading(library: Path) -> dict[str, str]:
    """This process's environment, for another one that begins with the library and computes in one thread."""
    paths = os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parents[1])])
    return {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}


class Breaker:
    """The library in this process, which was started with it."""

    def __init__(self) -> None:
        self._loaded = ctypes.CDLL(None)
        self._loaded.break_at.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_int)
        self._loaded.break_kinds.restype = ctypes.c_char_p

    def at(self, folder: Path, operation: int, how: str) -> None:
        """Count from here on, and break that operation; 0 only counts."""
        self._loaded.break_at(os.fsencode(folder), operation, HOW[how])

    def kinds(self) -> str:
        """The operations so far, a letter each: w a write, c a new file or folder, o another."""
        return self._loaded.break_kinds().decode()

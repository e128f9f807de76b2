"""Python side of break_files.c: make a chosen file operation below a folder fail or kill."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODES = {"kill": 1, "half": 2, "full": 3, "fail": 4, "once": 5}
"""Numbers of the modes in the library: kill before an operation, kill inside a write, full disk,
failing disk, one failure."""


def build_library(folder: Path) -> Path:
    """Compile the library into a folder; returns its path."""
    library = folder / "break_files.so"
    command = [
        "cc",
        "-O1",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(HERE / "break_files.c"),
        "-ldl",
    ]
    subprocess.run(command, check=True)
    return library


def make_preload_environment(library: Path) -> dict[str, str]:
    """Environment of a child process that preloads the library and uses one thread."""
    paths = os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parents[1])])
    return {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}


def run_broken(script: str, library: Path, *arguments: str) -> dict[str, Any]:
    """Run a script of this folder with the library; returns its report, which has no failures."""
    completed = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env=make_preload_environment(library),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)
    assert report["failures"] == []
    assert sum(report["ends"].values()) == report["tried"]
    return report


class Breaker:
    """The preloaded library in this process."""

    def __init__(self) -> None:
        self._loaded = ctypes.CDLL(None)
        self._loaded.break_at.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_int)
        self._loaded.break_kinds.restype = ctypes.c_char_p

    def break_at(self, folder: Path, operation: int, mode: str) -> None:
        """Count operations from now on, and break the one with that number; 0 only counts."""
        self._loaded.break_at(os.fsencode(folder), operation, MODES[mode])

    def operation_kinds(self) -> str:
        """Operations so far, a letter each: w a write, c a new file or folder, o another."""
        return self._loaded.break_kinds().decode()

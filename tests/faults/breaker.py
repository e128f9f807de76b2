"""Python side of break_files.c: make a chosen file operation below a folder fail or kill."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


RunBroken = Callable[[Path, str], dict[str, Any]]
"""Breaks operations below a folder in a mode; returns the report, which has no failures."""


@contextmanager
def start_script(script: str, library: Path) -> Iterator[RunBroken]:
    """Start a script of this folder with the library: one process, which imports torch once."""
    with subprocess.Popen(
        [sys.executable, str(HERE / script)],
        env=make_preload_environment(library),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run_broken(folder: Path, mode: str) -> dict[str, Any]:
            process.stdin.write(json.dumps([str(folder), mode]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, f"{script} ended with exit code {process.wait()}"
            report = json.loads(line)
            assert report["failures"] == []
            assert sum(report["ends"].values()) == report["tried"]
            return report

        yield run_broken
        process.stdin.close()


def run_script(main: Callable[[Path, str, int], None], strides: dict[str, int]) -> None:
    """Call `main` for `FOLDER MODE [STRIDE]` of the command line, or for lines of standard input.

    Lines are JSON: `[FOLDER, MODE]`.
    """
    gc.freeze()  # children do not touch, and so copy, the memory of all imported modules
    words = sys.argv[1:]
    for folder, mode, *stride in [words] if words else map(json.loads, sys.stdin):
        main(Path(folder), mode, int(stride[0]) if stride else strides.get(mode, 1))
        sys.stdout.flush()


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

"""Start Python processes that take themselves for Windows or macOS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import neural

TIMEOUT_SECONDS = 240
"""A loaded machine may need long to import torch."""


def create_environment(system: str, **variables: str) -> dict[str, str]:
    """Environment of a process on a simulated `windows` or `macos`."""
    folders = [Path(__file__).parent / f"{system}_startup", Path(neural.__file__).parents[1]]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "OMP_NUM_THREADS": "1",
        **variables,
    }


def start_python(
    system: str, *arguments: object, folder: Path, **variables: str
) -> subprocess.Popen[str]:
    """Start Python with arguments in a folder; its output can be read as text."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=create_environment(system, **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def run_python(system: str, *arguments: object, folder: Path, **variables: str) -> str:
    """Run Python to its end and return its output; AssertionError unless it succeeds."""
    with start_python(system, *arguments, folder=folder, **variables) as process:
        try:
            output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 0, f"exit code {process.returncode}\n{output}\n{errors}"
    return output

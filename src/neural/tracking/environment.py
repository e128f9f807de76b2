"""What a run was made with: versions, machine, command line. No environment variables: they hold secrets."""

from __future__ import annotations

import os
import platform
import socket
import sqlite3
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from neural.modules.late import torch

PACKAGES = ("neural", "torch", "numpy", "numba", "safetensors")


def environment() -> dict[str, Any]:
    """Of this process, in this folder."""
    return {
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "cpus": os.cpu_count(),
        # torch is not brought in for this: a run that never used it has no threads of it
        "threads": torch.get_num_threads() if "torch" in sys.modules else None,
        "command": sys.argv,
        "folder": str(Path.cwd()),
        "git": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit that the current folder is at, if it is in a git repository."""
    call = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

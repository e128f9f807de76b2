"""Versions, machine and command line of a run. No environment variables: they may hold secrets."""

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

from neural import __version__
from neural.core.redaction import redact_arguments
from neural.native.library import current_level
from neural.nn.lazy_torch import torch

PACKAGES = ("torch", "numpy", "safetensors")
"""Other packages whose versions a run records."""


def collect_environment() -> dict[str, Any]:
    """Describe this process and its working directory, as written to environment.json."""
    return {
        "python": platform.python_version(),
        "packages": {
            # of the code that runs: an editable installation may have been installed as an older one
            "neural": __version__,
            **{name: installed for name in PACKAGES if (installed := _package_version(name))},
        },
        "kernels": current_level() or "off",  # instruction set of the native kernels
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "cpus": os.cpu_count(),
        # do not import torch only to read its thread count
        "threads": torch.get_num_threads() if "torch" in sys.modules else None,
        "command": redact_arguments(sys.argv),
        "folder": str(Path.cwd()),
        "git": _git_commit(),
    }


def _package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """Commit hash of the working directory; None outside a git repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        completed = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()

"""Small disks in memory, if mounting is permitted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """Mount a tmpfs of that size (`900k`) on the folder; yields whether it worked."""
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield mounted
    finally:
        if mounted:
            _run("umount", "--lazy", str(folder))


def remount(folder: Path, options: str) -> None:
    """Change the size of a small disk (`size=9m`), or make it read-only (`ro`)."""
    assert _run("mount", "-o", f"remount,{options}", str(folder)), (
        f"{folder} cannot be mounted with {options}"
    )


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False

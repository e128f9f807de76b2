"""Small disks: mounted where that is permitted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """While this lasts, the folder is a disk of that size (`900k`), in memory; False where none can be mounted."""
    mounted = _told("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield mounted
    finally:
        if mounted:
            _told("umount", "--lazy", str(folder))


def changed(folder: Path, options: str) -> None:
    """Give a small disk another size (`size=9m`), or take the right to write (`ro`)."""
    assert _told("mount", "-o", f"remount,{options}", str(folder)), f"{folder} cannot be mounted with {options}"


def _told(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False

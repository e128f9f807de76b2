"""The kind of disk a run folder is on: local, or shared between machines.

rows.sqlite has a write-ahead log, which needs memory that all its processes share. Processes on
different machines share none: on a network file system, a reader on another machine may see damaged
or old rows, and file locks may be missing.
"""

from __future__ import annotations

import re
from pathlib import Path

from neural.core.platform_support import PROC_FOLDER

MOUNTS_FILE = PROC_FOLDER / "self" / "mountinfo"
"""Mounted file systems of this process; only Linux has it."""
NETWORK_FILE_SYSTEMS = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "juicefs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "panfs",
    "pvfs2",
    "smb3",
    "smbfs",
    "sshfs",
    "wekafs",
)
"""Types of file systems that several machines can mount, as the kernel calls them."""


def find_file_system(path: Path) -> str | None:
    """Type of the file system that holds a path, `ext4` or `nfs4`; None if it is unknown.

    The path need not exist.
    """
    try:
        mounts = MOUNTS_FILE.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    resolved_path = path.resolve()
    type_by_mount_point: dict[Path, str] = {}
    for line in mounts:
        # "36 35 98:0 /root /mnt/point rw,noatime master:1 - ext4 /dev/sda1 rw"
        fields, separator, file_system = line.partition(" - ")
        if separator and len(fields.split(" ")) > 4:
            mount_point = Path(_decode_octal(fields.split(" ")[4]))
            # of several mounts on one folder, the last one is on top
            type_by_mount_point[mount_point] = file_system.split(" ")[0]
    for folder in (resolved_path, *resolved_path.parents):
        if folder in type_by_mount_point:
            return type_by_mount_point[folder]
    return None


def find_network_file_system(path: Path) -> str | None:
    """Type of the file system if several machines can share it; None for a local or unknown one."""
    file_system = find_file_system(path)
    if file_system is None or file_system.removeprefix("fuse.") not in NETWORK_FILE_SYSTEMS:
        return None
    return file_system


def describe_network_disk(runs: Path) -> str | None:
    """A note for the user if the folder `runs` is on a network file system; None if it is not."""
    file_system = find_network_file_system(runs)
    if file_system is None:
        return None
    return (
        f"{runs} is on {file_system}, a network file system: programs on other machines may read "
        "wrong rows. Train with `--runs` on a local disk, and copy with `neural runs merge`"
    )


def _decode_octal(text: str) -> str:
    """Decode `\\\\040` and the like, which stand for spaces and backslashes in the mount table."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)

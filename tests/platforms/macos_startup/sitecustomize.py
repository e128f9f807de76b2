"""Python runs this file at start-up if its folder is on PYTHONPATH: simulates macOS.

Modules of neural get `sys.platform == "darwin"`, an `os` without `sched_getaffinity`, and an `fcntl` with
F_FULLFSYNC, whose calls are counted. For everybody there is no /proc.

Not simulated: file names without case, which need a file system of that kind.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import re
import sys
import types
from typing import Any

F_FULLFSYNC = 51
LINUX_ONLY = re.compile(r"sched_\w+|posix_fadvise|O_TMPFILE|O_PATH|eventfd\w*|memfd\w*|pidfd\w*")
FULL_SYNCS: list[int] = []
"""Descriptors that were flushed to the disk with F_FULLFSYNC."""


class MacModule(types.ModuleType):
    """A module of the standard library as macOS has it."""

    def __init__(self, module: types.ModuleType, **extra: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, **extra)

    def __getattr__(self, name: str) -> Any:
        if self._module is os and LINUX_ONLY.fullmatch(name):
            raise AttributeError(f"module 'os' of macOS has no {name}")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)


def control_file(descriptor: int, command: int, argument: Any = 0) -> Any:
    """`fcntl.fcntl` with F_FULLFSYNC."""
    if command != F_FULLFSYNC:
        return fcntl.fcntl(descriptor, command, argument)
    FULL_SYNCS.append(descriptor)
    return os.fsync(descriptor)


def _hide_proc(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and re.fullmatch(
        r"/proc/(\d+/stat|self/mountinfo|sys/.*)", str(arguments[0])
    ):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(arguments[0]))


def _import(
    name: str, namespace: Any = None, variables: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    importer = (namespace or {}).get("__name__", "")
    if level == 0 and (importer == "neural" or importer.startswith("neural.")):
        if name == "msvcrt":
            raise ModuleNotFoundError("No module named 'msvcrt'", name="msvcrt")
        if name in MAC_MODULES:
            return MAC_MODULES[name]
    return _real_import(name, namespace, variables, fromlist, level)


MAC_MODULES = {
    "os": MacModule(os),
    "sys": MacModule(sys, platform="darwin"),
    "fcntl": MacModule(fcntl, F_FULLFSYNC=F_FULLFSYNC, fcntl=control_file),
}
_real_import = builtins.__import__
builtins.__import__ = _import
sys.addaudithook(_hide_proc)

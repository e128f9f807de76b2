"""Python runs this file at start-up if its folder is on PYTHONPATH: simulates Windows.

Modules of neural get other `os`, `sys`, `signal`, `subprocess`, `socket`, `time` and `ctypes` than
the rest: without what Windows lacks, and with what only Windows has. The standard library and torch
see the real system. Files behave as on Windows for everybody: what is open or mapped cannot be replaced,
renamed or deleted, and names that Windows forbids cannot be created.

Not simulated: backslashes and drive letters in paths, code pages, locks against reading.
"""
# pathlib calls the functions that are replaced here: it is not used
# ruff: noqa: PTH112, PTH115, PTH118, PTH119, PTH123, PTH208

from __future__ import annotations

import builtins
import ctypes
import enum
import errno
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

MISSING_MODULES = re.compile(
    r"curses|fcntl|grp|posix|pty|pwd|readline|resource|spwd|syslog|termios|tty"
)
MISSING_NAMES = {
    "os": re.compile(
        r"chown|fchmod|fchown|fork\w*|getloadavg|getpg\w+|getpriority|get[e]?[ug]id|getsid|getgroups|"
        r"getxattr|killpg|lchown|lockf|mkfifo|mknod|nice|openpty|posix_\w+|pread\w*|pwrite\w*|"
        r"register_at_fork|sched_\w+|sendfile|set\w*[ug]id|setpg\w+|setpriority|setsid|setxattr|"
        r"statvfs|sync|sysconf\w*|uname|wait|wait3|wait4|waitid|WNOHANG|"
        r"O_(NONBLOCK|DIRECTORY|NOFOLLOW|CLOEXEC|SYNC|DSYNC|NOCTTY|PATH|TMPFILE)"
    ),
    "signal": re.compile(
        r"SIG(HUP|QUIT|KILL|USR1|USR2|PIPE|ALRM|CHLD|CONT|STOP|TSTP|TTIN|TTOU|BUS|WINCH|XCPU|IO)|"
        r"alarm|pause|setitimer|sigwait\w*|pthread_\w+|siginterrupt"
    ),
    "socket": re.compile(r"AF_UNIX|SO_REUSEPORT|sethostname"),
    "time": re.compile(r"tzset"),
    "sys": re.compile(r"abiflags"),
    "subprocess": re.compile(r"_posixsubprocess"),
    "ctypes": re.compile(r"$^"),
}
BREAK_STAND_IN = signal.SIGUSR1
"""The signal that stands for the console event Ctrl-Break."""
SIGBREAK, CTRL_C_EVENT, CTRL_BREAK_EVENT = 21, 0, 1
CREATE_NEW_PROCESS_GROUP = 0x200
EXIT_BY_CONSOLE_EVENT, EXIT_BY_TERMINATION = 0xC000013A, 1
STILL_ACTIVE = 259
FORBIDDEN_NAME = re.compile(
    r'.*[<>:"|?*\\\x00-\x1f].*|.*[. ]|(con|prn|aux|nul|com\d|lpt\d)(\..*)?',
    re.IGNORECASE | re.DOTALL,
)
FIRST_PARENT = os.getppid()
"""Windows never changes the parent of a process."""


class WindowsSignals(enum.IntEnum):
    """`signal.Signals` of Windows."""

    SIGINT = 2
    SIGILL = 4
    SIGFPE = 8
    SIGSEGV = 11
    SIGTERM = 15
    SIGBREAK = SIGBREAK
    SIGABRT = 22


class WindowsModule(types.ModuleType):
    """A module of the standard library as Windows has it."""

    def __init__(self, module: types.ModuleType, extra: dict[str, Any]) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _extra=extra)

    def __getattr__(self, name: str) -> Any:
        if name in self._extra:
            return self._extra[name]
        if MISSING_NAMES[self._module.__name__].fullmatch(name):
            raise AttributeError(f"module {self._module.__name__!r} of Windows has no {name}")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)


# os: processes and descriptors


def kill(pid: int, number: int) -> None:
    """`os.kill` of Windows: two console events; any other number ends the process at once."""
    if number == CTRL_C_EVENT:
        raise AssertionError("os.kill(pid, 0) sends Ctrl-C on Windows; it does not check a process")
    os.kill(pid, BREAK_STAND_IN if number == CTRL_BREAK_EVENT else signal.SIGKILL)


def open_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
    """`os.open`, which does not open folders on Windows."""
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return os.open(path, flags, *args, **kwargs)


def sync_descriptor(descriptor: int) -> None:
    """`os.fsync`, which needs a file open for writing on Windows."""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    os.fsync(descriptor)


def create_link(*args: Any, **kwargs: Any) -> None:
    """`os.symlink` without the privilege that it needs on Windows."""
    raise OSError(errno.EINVAL, "A required privilege is not held by the client")


# signal


def set_handler(number: int, handler: Any) -> Any:
    """`signal.signal`: SIGBREAK is received through its stand-in."""
    if number not in list(WindowsSignals):
        raise ValueError("signal number is not one of those of Windows")
    if number != SIGBREAK:
        return signal.signal(number, handler)
    if callable(handler):
        return signal.signal(BREAK_STAND_IN, lambda _, frame: handler(SIGBREAK, frame))
    return signal.signal(BREAK_STAND_IN, handler)


# subprocess


class WindowsPopen(subprocess.Popen):
    """`subprocess.Popen` of Windows: `terminate` gives the child no chance to save."""

    def __init__(self, *args: Any, creationflags: int = 0, **kwargs: Any) -> None:
        if kwargs.pop("preexec_fn", None) or kwargs.pop("pass_fds", None):
            raise ValueError("preexec_fn and pass_fds are not supported on Windows")
        kwargs.pop("start_new_session", None)  # ignored there
        is_new_group = bool(creationflags & CREATE_NEW_PROCESS_GROUP)
        super().__init__(*args, start_new_session=is_new_group, **kwargs)
        self.is_new_group = is_new_group

    def send_signal(self, sig: int) -> None:
        """Console events need a process group of their own."""
        if self.poll() is not None:
            return
        if sig == signal.SIGTERM:
            os.kill(self.pid, signal.SIGKILL)
        elif sig == CTRL_BREAK_EVENT and self.is_new_group:
            os.kill(self.pid, BREAK_STAND_IN)
        else:
            raise ValueError(f"Unsupported signal: {sig}")

    def terminate(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGTERM)

    kill = terminate

    def _handle_exitstatus(self, *args: Any, **kwargs: Any) -> None:
        super()._handle_exitstatus(*args, **kwargs)  # type: ignore[misc]
        if self.returncode == -BREAK_STAND_IN:
            self.returncode = EXIT_BY_CONSOLE_EVENT
        elif self.returncode is not None and self.returncode < 0:
            self.returncode = EXIT_BY_TERMINATION


# msvcrt


def lock_region(descriptor: int, mode: int, count: int) -> None:
    """`msvcrt.locking` for the bytes from the position on.

    The lock belongs to the handle, as on Windows: another handle of the same process is refused.
    The system releases it when the handle is closed or the process ends.
    """
    kind = {2: fcntl.F_WRLCK, 0: fcntl.F_UNLCK}[mode]
    set_lock_of_handle = 37  # F_OFD_SETLK of Linux
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    flock = struct.pack("hhqqi", kind, os.SEEK_SET, position, count, 0)
    try:
        fcntl.fcntl(descriptor, set_lock_of_handle, flock)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


# kernel32


class Kernel32:
    """The functions of the Windows kernel that neural calls, over /proc."""

    priority_class: int | None = None

    def __init__(self, name: str) -> None:
        assert name == "kernel32"
        for function in (
            "OpenProcess",
            "CloseHandle",
            "GetCurrentProcess",
            "GetExitCodeProcess",
            "GetProcessTimes",
            "SetPriorityClass",
            "GlobalMemoryStatusEx",
        ):
            # a function that takes attributes such as `restype`, unlike a method
            setattr(self, function, self._as_function(getattr(self, f"_{function}")))

    @staticmethod
    def _as_function(method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: method(*args)

    def _OpenProcess(self, access: int, inherit: bool, pid: int) -> int | None:
        return pid if _read_process(pid) else None

    def _CloseHandle(self, handle: int) -> int:
        return 1

    def _GetCurrentProcess(self) -> int:
        return -1

    def _GetExitCodeProcess(self, handle: int, code: Any) -> int:
        fields = _read_process(handle)
        code._obj.value = STILL_ACTIVE if fields and fields[0] != "Z" else 0
        return 1

    def _GetProcessTimes(self, handle: int, creation: Any, *_others: Any) -> int:
        fields = _read_process(handle)
        creation._obj.value = int(fields[19]) if fields else 0
        return 1

    def _SetPriorityClass(self, handle: int, priority: int) -> int:
        Kernel32.priority_class = priority
        return 1

    def _GlobalMemoryStatusEx(self, status: Any) -> int:
        assert status._obj[0] == ctypes.sizeof(status._obj) == 64
        status._obj[1] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return 1


def _read_process(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


# Files, for all modules


def _list_open_files() -> set[str]:
    """Real paths of the files that this process has open or mapped into memory."""
    paths = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            paths.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # closed meanwhile: the one of this listing
            continue
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths.update(line.split(maxsplit=5)[5].strip() for line in maps if " /" in line)
    return paths


def _refuse_if_open(path: Any, folder_descriptor: int | None = None) -> None:
    folder = f"/proc/self/fd/{folder_descriptor}" if folder_descriptor is not None else "."
    real_path = os.path.realpath(os.path.join(folder, os.fsdecode(path)))
    for open_path in _list_open_files():
        if open_path == real_path or open_path.startswith(real_path + os.sep):
            raise PermissionError(errno.EACCES, f"{open_path} is open in this process", str(path))


def _refuse_open_files(function: Callable[..., Any], *, checks_target: bool) -> Callable[..., Any]:
    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        descriptor = kwargs.get("dir_fd", kwargs.get("src_dir_fd"))
        _refuse_if_open(path, descriptor)
        if checks_target:
            _refuse_if_open(args[0], kwargs.get("dst_dir_fd"))
            if function is _real_rename and os.path.lexists(args[0]):
                raise FileExistsError(errno.EEXIST, "File exists", os.fsdecode(args[0]))
            if os.path.isdir(args[0]):  # not even an empty folder is replaced
                raise PermissionError(errno.EACCES, "Access is denied", os.fsdecode(args[0]))
        return function(path, *args, **kwargs)

    return call


def _check_names(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: refuse to create a file or folder with a name that Windows forbids."""
    if event == "open":
        path, _, flags = arguments
        is_new = isinstance(flags, int) and bool(flags & os.O_CREAT)
    elif event in ("os.mkdir", "os.rename"):
        path, is_new = arguments[1 if event == "os.rename" else 0], True
    else:
        return
    if is_new and isinstance(path, str | bytes | os.PathLike):
        name = os.path.basename(os.fsdecode(path))
        if name and FORBIDDEN_NAME.fullmatch(name):
            raise OSError(errno.EINVAL, "Invalid argument", os.fsdecode(path))


def _create_modules() -> dict[str, types.ModuleType]:
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.__dict__.update(LK_LOCK=1, LK_NBLCK=2, LK_UNLCK=0, locking=lock_region)
    extras: dict[types.ModuleType, dict[str, Any]] = {
        os: {
            "name": "nt",
            "O_BINARY": 0,
            "kill": kill,
            "open": open_descriptor,
            "fsync": sync_descriptor,
            "symlink": create_link,
            "getppid": lambda: FIRST_PARENT,
        },
        sys: {"platform": "win32", "getwindowsversion": lambda: (10, 0, 19045)},
        signal: {
            **{number.name: number for number in WindowsSignals},
            "CTRL_C_EVENT": CTRL_C_EVENT,
            "CTRL_BREAK_EVENT": CTRL_BREAK_EVENT,
            "Signals": WindowsSignals,
            "signal": set_handler,
        },
        subprocess: {
            "CREATE_NEW_PROCESS_GROUP": CREATE_NEW_PROCESS_GROUP,
            "Popen": WindowsPopen,
        },
        # an option that Linux accepts, too
        socket: {"SO_EXCLUSIVEADDRUSE": socket.SO_KEEPALIVE},
        time: {},
        ctypes: {"WinDLL": Kernel32},
    }
    modules: dict[str, types.ModuleType] = {
        module.__name__: WindowsModule(module, extra) for module, extra in extras.items()
    }
    return {**modules, "msvcrt": msvcrt}


def _import(
    name: str, namespace: Any = None, variables: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    importer = (namespace or {}).get("__name__", "")
    if level == 0 and (importer == "neural" or importer.startswith("neural.")):
        if MISSING_MODULES.fullmatch(name):
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name in WINDOWS_MODULES:
            return WINDOWS_MODULES[name]
    return _real_import(name, namespace, variables, fromlist, level)


WINDOWS_MODULES = _create_modules()
_real_import = builtins.__import__
_real_rename = os.rename
builtins.__import__ = _import
os.replace = _refuse_open_files(os.replace, checks_target=True)
os.rename = _refuse_open_files(os.rename, checks_target=True)
os.unlink = _refuse_open_files(os.unlink, checks_target=False)
os.remove = _refuse_open_files(os.remove, checks_target=False)
sys.addaudithook(_check_names)

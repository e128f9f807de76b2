"""Functions that Linux, macOS and Windows implement in different ways.

No other module may use platform-only names (`fcntl`, `msvcrt`, `os.fork`, `signal.SIGKILL` …) or
ask which system it runs on; tests/core/test_platform_names.py holds that.

What differs most on Windows: a file that any process has open cannot be replaced or deleted, and a
folder that contains one cannot be renamed; virus scanners open new files for moments. There is no
`fork`, and ending a process gives it no chance to save; a console event does.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

# `neural check` imports this module: what few functions need, they import themselves
if TYPE_CHECKING:
    import socket
    import subprocess

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
if IS_WINDOWS:
    import msvcrt
else:
    import fcntl

CAN_MOVE_OPEN_FILES = not IS_WINDOWS
"""Whether files that are open, or mapped into memory, can be renamed, replaced and deleted."""
CAN_FORK = hasattr(os, "fork") and not IS_MACOS
"""Whether processes can be forked. Libraries of macOS crash in forked processes."""
IS_HANGUP_IGNORED = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
"""Whether a closed terminal stops nothing, as in programs that `nohup` starts."""
STOP_SIGNALS: tuple[int, ...] = (
    signal.SIGINT,
    signal.SIGTERM,
    *((signal.SIGBREAK,) if IS_WINDOWS else ()),  # type: ignore[attr-defined]
    *(() if IS_WINDOWS or IS_HANGUP_IGNORED else (signal.SIGHUP,)),  # type: ignore[attr-defined]
)
"""Signals that ask a process to save and stop."""
PROC_FOLDER = Path("/proc")
"""Folder in which Linux describes processes."""
SHARING_RETRY_SECONDS = 2.0
"""How long Windows is asked again for a file that another program has open."""
SHARING_RETRY_INTERVAL = 0.02
"""Seconds between two of these tries."""
LOCK_POLL_SECONDS = 0.1
"""Seconds between two tries to lock a file on Windows."""
LOCK_OFFSET = 1 << 30
"""Byte that is locked on Windows. Locks are mandatory there: one at the start of the file would keep
other programs from copying it. A byte behind the end can be locked."""
ASCII_SYMBOLS = {
    symbol: replacement
    for replacement, symbols in {
        "-": "–—−─━",
        "|": "│┃║",
        "=": "═",
        "->": "→",
        "<-": "←",
        "^": "↑",
        "v": "↓",
        "+": "✓",
        "x": "×✗",
        ".": "·",
        "...": "…",
        "*": "•",
        "~": "≈",
        ">=": "≥",
        "<=": "≤",
        "+-": "±",
        '"': "“”„",
        "'": "‘’",
        "delta": "Δ",
        "sigma": "σ",
        "u": "µ",
        "inf": "∞",
    }.items()
    for symbol in symbols
}
"""Replacements on consoles that cannot show a symbol."""
ASCII_SHADES = ".:-=+*%#"
"""Replacements of the blocks `▁` to `█`, the shades `░▒▓` and the dots of charts, from light to dark."""

Result = TypeVar("Result")


# Files


def lock_file(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file for this process; BlockingIOError if another has it and `wait` is False.

    The system releases the lock when the process ends or closes the file. Children do not inherit
    it. On POSIX, closing any handle of the file releases it, and a process can lock a file twice.
    """
    while True:
        try:
            if IS_WINDOWS:
                os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            else:
                # not flock: a child that outlives us (a data worker) would inherit that lock
                fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise
            if not wait:
                raise BlockingIOError(error.errno, "another process has locked the file") from None
        time.sleep(LOCK_POLL_SECONDS)


def unlock_file(descriptor: int) -> None:
    """Release a lock of `lock_file` before the file is closed."""
    if IS_WINDOWS:
        os.lseek(descriptor, LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_UN)


def sync_file(descriptor: int) -> None:
    """Flush a file to the disk, so that it survives a power failure."""
    if IS_MACOS:
        # fsync of macOS leaves the data in the cache of the disk
        with contextlib.suppress(OSError):  # network file systems lack it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush the folder's entries (created, renamed, deleted names) to the disk."""
    if IS_WINDOWS:  # folders cannot be opened there; NTFS logs their entries
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(source: Path, target: Path) -> None:
    """Rename a file over another, atomically. Windows waits while another program has it open."""
    _retry_sharing(lambda: os.replace(source, target), target)  # noqa: PTH105


def rename_folder(source: Path, target: Path) -> None:
    """Rename a folder. No process may have a file in it open unless CAN_MOVE_OPEN_FILES."""
    _retry_sharing(lambda: os.rename(source, target), source)  # noqa: PTH104


def delete_file(path: Path) -> bool:
    """Delete a file, if it exists. False if it stays because a program has it open (Windows)."""
    try:
        _retry_sharing(lambda: path.unlink(missing_ok=True), path)
    except PermissionError:
        if IS_WINDOWS:
            return False
        raise
    return True


def open_without_blocking(path: Path) -> int:
    """Open a file for reading bytes; returns a descriptor. A pipe without a writer does not block.

    Windows waits while another program replaces the file.
    """
    # O_BINARY: otherwise Windows translates line ends
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    return _retry_sharing(lambda: os.open(path, flags), path)


def _retry_sharing(action: Callable[[], Result], path: Path) -> Result:
    """Repeat an action that Windows refuses because some process has the file open."""
    deadline = time.monotonic() + SHARING_RETRY_SECONDS
    while True:
        try:
            return action()
        except PermissionError as error:
            if not IS_WINDOWS:
                raise
            if time.monotonic() >= deadline:
                # Windows has the same error code for both
                reason = (
                    f"{path.name} is open in another program or write-protected; close that program"
                )
                raise PermissionError(errno.EBUSY, reason, str(path)) from error
        time.sleep(SHARING_RETRY_INTERVAL)


def cache_folder() -> Path:
    """Folder in which this system keeps files that programs can fetch again."""
    if IS_MACOS:
        return Path.home() / "Library" / "Caches"
    if IS_WINDOWS:
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


# Processes and signals


def new_session_options() -> dict[str, Any]:
    """Options of `subprocess.Popen` for a child that does not get the Ctrl-C of this console."""
    if IS_WINDOWS:
        import subprocess

        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    return {"start_new_session": True}


def request_stop(process: subprocess.Popen[Any]) -> None:
    """Ask a child that was started with `new_session_options` to save and stop."""
    if process.poll() is not None:
        return
    if IS_WINDOWS:  # `terminate` ends the child there without asking
        process.send_signal(signal.CTRL_BREAK_EVENT)  # type: ignore[attr-defined]
    else:
        process.send_signal(signal.SIGTERM)


def request_own_stop() -> None:
    """Ask this process to save and stop; callable from any thread."""
    if IS_WINDOWS:  # `os.kill` ends the process there without asking
        signal.raise_signal(signal.SIGTERM)
    else:
        os.kill(os.getpid(), signal.SIGTERM)  # also interrupts a system call of the main thread


def describe_exit_signal(exit_code: int) -> str | None:
    """Name of the signal that ended a process with this exit code; None if it ended by itself."""
    if exit_code >= 0:
        return None
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def watch_process(pid: int) -> Callable[[], bool]:
    """Function that tells whether the parent process `pid` still runs."""
    if not IS_WINDOWS:
        return lambda: os.getppid() == pid  # orphans get another parent
    # Windows never changes the parent, and a virtual environment starts Python through a launcher
    identity = process_identity(pid)
    return lambda: identity is not None and process_identity(pid) == identity


def process_exists(pid: int) -> bool:
    """Whether a process with this id runs, possibly of another user."""
    if IS_WINDOWS:  # `os.kill(pid, 0)` would send Ctrl-C there
        return process_identity(pid) is not None
    try:
        os.kill(pid, 0)  # signal 0 only checks
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def process_identity(pid: int) -> str | None:
    """Text that differs for another process with the same id: its start time, and that of the boot.

    None if there is no such process, or where the system does not tell (macOS).
    """
    if IS_WINDOWS:
        return _windows_process_identity(pid)
    try:
        boot = (PROC_FOLDER / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        text = (PROC_FOLDER / f"{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # fields after the command name, which stands in parentheses and may contain anything
    fields = text.rpartition(")")[2].split()
    state, start_time = fields[0], fields[19]
    return None if state == "Z" else f"{boot}:{start_time}"  # a zombie has ended


def fork_process(run_child: Callable[[], NoReturn]) -> int:
    """Fork; the child calls `run_child`, which must not return. Returns the id of the child."""
    pid = os.fork()
    if pid == 0:
        run_child()
    return pid


def detach_from_session() -> None:
    """Give this forked process its own session and the default handlers of signals."""
    os.setsid()
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class ForkedProcess:
    """A forked process with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs. Minus the signal number if a signal killed it."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        exit_code = self._wait(0)
        assert exit_code is not None
        return exit_code

    def terminate(self) -> None:
        """Send SIGTERM: the training finishes its step, saves and stops."""
        self._send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send_signal(signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def _send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


# The machine


def count_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def physical_memory_bytes() -> int | None:
    """Size of the main memory; None if unknown."""
    if IS_WINDOWS:
        return _windows_memory_bytes()
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def lower_priority(niceness: int) -> None:
    """Let other processes go first: `niceness` from 1 to 19. Without effect where refused."""
    if IS_WINDOWS:
        below_normal = 0x4000
        kernel = _windows_kernel()
        kernel.SetPriorityClass(kernel.GetCurrentProcess(), below_normal)
        return
    with contextlib.suppress(OSError):
        os.nice(niceness)


def share_heaps(count: int) -> None:
    """Let all threads allocate from `count` heaps, for servers that run long; glibc (Linux) only.

    By default glibc gives up to eight heaps per core to threads. Each heap keeps what it needed at
    its peak, so the memory of a server grows for hours. Other C libraries share theirs.
    """
    import ctypes

    max_arenas = -8  # M_ARENA_MAX of malloc.h
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(max_arenas, count)


def is_superuser() -> bool:
    """Whether this process runs as root. Windows has no such user."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def prevent_port_sharing(listener: socket.socket) -> None:
    """Let a restarted server have its port at once, and no other program have it, too."""
    import socket

    # SO_REUSEADDR would let another program listen on the same port of Windows
    option = socket.SO_EXCLUSIVEADDRUSE if IS_WINDOWS else socket.SO_REUSEADDR  # type: ignore[attr-defined]
    listener.setsockopt(socket.SOL_SOCKET, option, 1)


# The console


def quote_argument(text: str) -> str:
    """A text as one argument of a command that the user may paste into the shell."""
    import shlex
    import subprocess

    return subprocess.list2cmdline([text]) if IS_WINDOWS else shlex.quote(text)


def quote_command(arguments: Sequence[str]) -> str:
    """A command line that the user may paste into the shell."""
    return " ".join(quote_argument(argument) for argument in arguments)


def make_output_encodable(stream: IO[str]) -> None:
    """Let a console or pipe that cannot show a symbol get a replacement instead of an exception.

    Symbols such as `→` become ASCII, all other characters `\\uXXXX`. On Windows the output to a file
    or pipe has the code page of the system, say cp1252. UTF-8 lacks only bytes of file names that
    are not UTF-8.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    errors = getattr(stream, "errors", None)
    if reconfigure and errors in ("strict", "backslashreplace"):  # else the user chose it
        codecs.register_error("neural.ascii_symbols", _replace_symbols)
        reconfigure(errors="neural.ascii_symbols")


def _replace_symbols(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(map(_ascii_symbol, text)), error.end


def _ascii_symbol(character: str) -> str:
    if character in ASCII_SYMBOLS:
        return ASCII_SYMBOLS[character]
    if "▁" <= character <= "█":
        return ASCII_SHADES[ord(character) - ord("▁")]
    if "▉" <= character <= "▏":  # eighths of a block from the left, from wide to narrow
        return ASCII_SHADES[ord("▏") - ord(character)]
    if character in "░▒▓":
        return ASCII_SHADES[2 + 2 * "░▒▓".index(character)]
    if "\u2800" <= character <= "\u28ff":  # dots of charts: one bit each
        return (" " + ASCII_SHADES)[(ord(character) - 0x2800).bit_count()]
    if "─" <= character <= "╿":  # corners and crossings of boxes
        return "+"
    return character.encode("ascii", "backslashreplace").decode("ascii")


# Functions of Windows that Python does not have


def _windows_kernel() -> Any:
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    # handles are pointers; without a declaration ctypes would cut them to 32 bits
    kernel.OpenProcess.restype = kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.CloseHandle.argtypes = [ctypes.c_void_p]
    kernel.SetPriorityClass.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    kernel.GetExitCodeProcess.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    kernel.GetProcessTimes.argtypes = [ctypes.c_void_p] * 5
    return kernel


def _windows_process_identity(pid: int) -> str | None:
    """Start time of a process, in units of 100 ns since 1601; None if it does not run."""
    import ctypes

    query_limited_information, still_active = 0x1000, 259
    if not 0 < pid < 1 << 32:
        return None
    kernel = _windows_kernel()
    handle = kernel.OpenProcess(query_limited_information, False, pid)
    if not handle:
        return None
    try:
        exit_code = ctypes.c_uint32()
        times = [ctypes.c_uint64() for _ in range(4)]  # creation, exit, kernel time, user time
        succeeded = kernel.GetExitCodeProcess(
            handle, ctypes.byref(exit_code)
        ) and kernel.GetProcessTimes(handle, *(ctypes.byref(value) for value in times))
        # a process that has ended stays visible as long as anybody has a handle of it
        is_running = succeeded and exit_code.value == still_active
        return f"windows:{times[0].value}" if is_running else None
    finally:
        kernel.CloseHandle(handle)


def _windows_memory_bytes() -> int | None:
    import ctypes

    # MEMORYSTATUSEX: two 32-bit integers, the first of them its size, then seven of 64 bits, the
    # first of them the physical memory
    status = (ctypes.c_uint64 * 8)(64)
    return status[1] if _windows_kernel().GlobalMemoryStatusEx(ctypes.byref(status)) else None


def relative_path(path: Path) -> Path:
    """The path relative to the working directory if it lies below it, else unchanged."""
    cwd = Path.cwd()
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path


def path_argument(path: Path) -> str:
    """The relative path as an argument of a command that the user may paste into the shell."""
    return quote_argument(str(relative_path(path)))

"""Files, console and processes behind one interface; Windows and macOS by patched constants."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from neural.core import platform_support
from neural.core.files import open_atomic, write_atomically
from neural.core.platform_support import (
    delete_file,
    lock_file,
    make_output_encodable,
    open_without_blocking,
    quote_command,
    rename_folder,
    replace_file,
    share_heaps,
    unlock_file,
)
from neural.runs.errors import RunError, translate_errors


@pytest.fixture
def windows(monkeypatch):
    """Windows, as far as files are concerned, that is asked again for half a second."""
    monkeypatch.setattr(platform_support, "IS_WINDOWS", True)
    monkeypatch.setattr(platform_support, "SHARING_RETRY_SECONDS", 0.5)
    monkeypatch.setattr(platform_support, "SHARING_RETRY_INTERVAL", 0.001)


def refuse_first(function, count):
    """The function, which raises PermissionError the first `count` times, and its calls."""
    calls = []

    def call(*args, **kwargs):
        calls.append(args)
        if len(calls) <= count:
            raise PermissionError(errno.EACCES, "the process cannot access the file", str(args[0]))
        return function(*args, **kwargs)

    return call, calls


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("replace", lambda folder: replace_file(folder / "a", folder / "b")),
        ("rename", lambda folder: rename_folder(folder / "folder", folder / "moved")),
        ("unlink", lambda folder: delete_file(folder / "a")),
        ("open", lambda folder: os.close(open_without_blocking(folder / "a"))),
    ],
    ids=["replace", "rename", "delete", "open"],
)
def test_windows_is_asked_again_while_another_program_has_the_file_open(
    name, action, tmp_path, monkeypatch, windows
):
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    (tmp_path / "folder").mkdir()
    patched, calls = refuse_first(getattr(os, name), 3)
    monkeypatch.setattr(os, name, patched)
    action(tmp_path)
    assert len(calls) == 4


def test_a_file_that_stays_open_is_a_message_and_the_old_content_stays(
    tmp_path, monkeypatch, windows
):
    path = tmp_path / "status.json"
    path.write_text("old")
    patched, calls = refuse_first(os.replace, 10**9)
    monkeypatch.setattr(os, "replace", patched)
    with (
        pytest.raises(
            RunError, match=r"status\.json is open in another program or write-protected"
        ),
        translate_errors("the run cannot be written"),
    ):
        write_atomically(path, "new")
    assert len(calls) > 3
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path], "the temporary file is left"


def test_a_file_that_cannot_be_deleted_now_is_left_for_later(tmp_path, monkeypatch, windows):
    path = tmp_path / "step.safetensors"
    path.touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse_first(os.unlink, 10**9)[0])
        assert not delete_file(path)
    assert delete_file(path)
    assert delete_file(path), "a file that is not there is deleted"


def test_other_systems_report_a_missing_permission_at_once(tmp_path, monkeypatch):
    patched, calls = refuse_first(os.replace, 10**9)
    monkeypatch.setattr(os, "replace", patched)
    with pytest.raises(PermissionError):
        replace_file(tmp_path / "a", tmp_path / "b")
    assert len(calls) == 1


def test_a_lock_excludes_other_processes_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    script = (
        "import os, sys; from neural.core.platform_support import lock_file\n"
        "try: lock_file(os.open(sys.argv[1], os.O_RDWR))\n"
        "except BlockingIOError as error: sys.exit(str(error.strerror))\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    with path.open("rb+") as file:
        lock_file(file.fileno())
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another process has locked the file" in refused.stderr
        unlock_file(file.fileno())
        assert subprocess.run(command, check=False).returncode == 0


class WindowsLocks:
    """`msvcrt` whose lock is refused with an error number the first `refusals` times."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self, refusals, number=errno.EACCES):
        self.refusals, self.number, self.calls = refusals, number, []

    def locking(self, descriptor, mode, count):
        self.calls.append((mode, os.lseek(descriptor, 0, os.SEEK_CUR), count))
        if len(self.calls) <= self.refusals:
            raise OSError(self.number, "refused")


def test_windows_waits_for_a_lock_and_leaves_the_content_readable(tmp_path, monkeypatch, windows):
    path = tmp_path / "lock"
    path.write_bytes(b"content")
    locks = WindowsLocks(refusals=2)
    monkeypatch.setattr(platform_support, "msvcrt", locks, raising=False)
    monkeypatch.setattr(platform_support, "LOCK_POLL_SECONDS", 0.001)
    with path.open("rb+") as file:
        lock_file(file.fileno(), wait=True)
        unlock_file(file.fileno())
    modes, positions, counts = zip(*locks.calls, strict=True)
    assert modes == (2, 2, 2, 0)
    assert len(set(positions)) == 1, "the byte that is released is not the one that was locked"
    assert positions[0] > path.stat().st_size, "a locked byte of the content cannot be read"
    assert set(counts) == {1}


@pytest.mark.parametrize(
    ("number", "error"), [(errno.EDEADLK, BlockingIOError), (errno.EBADF, OSError)]
)
def test_windows_refuses_a_taken_lock_at_once(number, error, tmp_path, monkeypatch, windows):
    locks = WindowsLocks(refusals=9, number=number)
    monkeypatch.setattr(platform_support, "msvcrt", locks, raising=False)
    with (tmp_path / "lock").open("wb") as file, pytest.raises(error) as raised:
        lock_file(file.fileno())
    assert type(raised.value) is error
    assert len(locks.calls) == 1


def test_windows_does_not_open_folders_to_flush_them(tmp_path, monkeypatch, windows):
    opened = []
    monkeypatch.setattr(os, "open", lambda *args: opened.append(args))
    platform_support.sync_folder(tmp_path)
    assert opened == []


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("IS_WINDOWS", {"LOCALAPPDATA": "/local"}, "/local"),
        ("IS_WINDOWS", {}, "/home/me/AppData/Local"),
        ("IS_MACOS", {"XDG_CACHE_HOME": "/other"}, "/home/me/Library/Caches"),
        (None, {"XDG_CACHE_HOME": "/other"}, "/other"),
        (None, {"XDG_CACHE_HOME": ""}, "/home/me/.cache"),
    ],
)
def test_the_cache_is_where_the_system_keeps_it(system, variables, expected, monkeypatch):
    for name in ("IS_WINDOWS", "IS_MACOS"):
        monkeypatch.setattr(platform_support, name, name == system)
    for name in ("LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert platform_support.cache_folder() == Path(expected)


def test_exit_codes_of_windows_are_not_taken_for_signals():
    assert platform_support.describe_exit_signal(0xC000013A) is None  # ended by Ctrl-C
    assert platform_support.describe_exit_signal(1) is None
    assert platform_support.describe_exit_signal(-9) == "SIGKILL"
    assert platform_support.describe_exit_signal(-99) == "signal 99"


def test_a_network_file_system_without_full_sync_is_flushed_as_usual(tmp_path, monkeypatch):
    class NoFullSync:
        F_FULLFSYNC = 51

        @staticmethod
        def fcntl(*args):
            raise OSError(errno.ENOTSUP, "Operation not supported")

    synced = []
    monkeypatch.setattr(platform_support, "IS_MACOS", True)
    monkeypatch.setattr(platform_support, "fcntl", NoFullSync, raising=False)
    monkeypatch.setattr(os, "fsync", synced.append)
    platform_support.sync_file(7)
    assert synced == [7]


def test_a_name_of_255_bytes_is_written_atomically(tmp_path):
    path = tmp_path / ("ü" * 127 + "x")
    with open_atomic(path) as file:
        file.write(b"content")
    assert path.read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("cp1252", "loss -> 1 × #| ü \\u6f22 …"),
        ("ascii", "loss -> 1 x #| \\xfc \\u6f22 ..."),
        ("latin-1", "loss -> 1 × #| ü \\u6f22 ..."),
        ("utf-8", "loss → 1 × █│ ü 漢 …"),
    ],
)
def test_a_symbol_that_the_console_lacks_is_replaced(encoding, expected):
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding, newline="")
    make_output_encodable(stream)
    stream.write("loss → 1 × █│ ü 漢 …")
    stream.flush()
    assert buffer.getvalue().decode(encoding) == expected


def test_a_file_name_that_is_not_utf_8_can_be_printed():
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    make_output_encodable(stream)
    stream.write(os.fsdecode(b"caf\xe9"))
    stream.flush()
    assert buffer.getvalue() == b"caf\\udce9"


def test_an_error_handler_that_the_user_chose_is_kept():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    make_output_encodable(stream)
    assert stream.errors == "replace"


def test_a_command_is_quoted_for_the_shell_of_the_system(monkeypatch):
    command = ["neural", "train", "it's mine.neural", "--set", "a=[1, 2]"]
    assert quote_command(command) == """neural train 'it'"'"'s mine.neural' --set 'a=[1, 2]'"""
    monkeypatch.setattr(platform_support, "IS_WINDOWS", True)
    assert quote_command(command) == """neural train "it's mine.neural" --set "a=[1, 2]\""""


def test_a_second_server_does_not_get_the_same_port():
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            platform_support.prevent_port_sharing(listener)
        first.bind(("127.0.0.1", 0))
        first.listen()
        with pytest.raises(OSError, match="in use"):
            second.bind(first.getsockname())


def test_the_source_tree_fits_on_case_insensitive_file_systems_and_windows():
    root = Path(__file__).parents[2]
    names = [
        path.relative_to(root).as_posix()
        for folder in ("src", "tests", "docs", "examples", "benchmarks", "editors")
        for path in (root / folder).rglob("*")
        if "__pycache__" not in path.parts and "node_modules" not in path.parts
    ]
    assert len({name.casefold() for name in names}) == len(names)
    reserved = {"con", "prn", "aux", "nul"}
    parts = {part for name in names for part in name.split("/")}
    assert not [part for part in parts if part.partition(".")[0].casefold() in reserved]
    assert not [part for part in parts if part[-1] in ". " or set(part) & set('<>:"|?*\\')]
    assert max(map(len, names)) < 160, "a checkout must stay below the 260 characters of Windows"


COUNT_HEAPS = """
import ctypes, sys, threading
from neural.core.platform_support import share_heaps

if sys.argv[1] != "default":
    share_heaps(int(sys.argv[1]))
barrier = threading.Barrier(7)

def allocate():
    blocks = [bytearray(5000) for _ in range(100)]
    barrier.wait()  # all threads hold their blocks at the same time
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads:
    thread.start()
barrier.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
barrier.wait()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_info"),
    reason="only glibc has heaps for threads",
)
def test_threads_share_heaps(tmp_path):
    def count_heaps(heaps):
        path = tmp_path / "heaps.xml"
        # PYTHONMALLOC: Python's own allocator takes memory from the system, not from a heap
        subprocess.run(
            [sys.executable, "-c", COUNT_HEAPS, heaps, str(path)],
            check=True,
            env={**os.environ, "PYTHONMALLOC": "malloc"},
        )
        return path.read_text().count("<heap nr=")

    assert count_heaps("2") == 2
    assert count_heaps("default") > 2


def test_systems_without_such_heaps_are_left_alone(monkeypatch):
    def refuse(name):
        raise TypeError("argument of type 'NoneType'")  # as ctypes on Windows

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    share_heaps(2)

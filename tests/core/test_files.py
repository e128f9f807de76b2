"""Files that are never half written."""

import os
from pathlib import Path

import pytest

from neural.core.files import _among_devices, replacing, write_atomically


def test_the_whole_text_takes_the_place_of_the_old(tmp_path):
    file = tmp_path / "a.txt"
    for text in ("old", "new: ü\r\n"):
        write_atomically(file, text)
    assert file.read_bytes() == "new: ü\r\n".encode()
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "a.txt"
    write_atomically(file, "old")
    with pytest.raises(RuntimeError), replacing(file) as out:
        out.write(b"half of it")
        raise RuntimeError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_mode_stays_and_a_new_file_has_the_usual_one(tmp_path):
    plain, atomic = tmp_path / "plain", tmp_path / "atomic"
    plain.write_text("")
    write_atomically(atomic, "")
    assert plain.stat().st_mode == atomic.stat().st_mode
    atomic.chmod(0o640)
    write_atomically(atomic, "again")
    assert atomic.stat().st_mode & 0o777 == 0o640


def test_a_durable_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(tmp_path, monkeypatch):
    done = []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), real_sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append("name"), real_replace(self, to)))
    write_atomically(tmp_path / "a", "")
    assert done == ["sync", "name", "sync"]
    done.clear()
    write_atomically(tmp_path / "a", "", durable=False)
    assert done == ["name"]


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_shared_memory_holds_files_that_are_replaced_whole():
    assert _among_devices(Path("/dev/stdout"))
    assert not _among_devices(Path("/dev/shm/runs/status.json"))

"""Atomic file writes."""

import os
from pathlib import Path

import pytest

from neural.core.files import (
    _is_in_dev,
    format_missing_file,
    is_file_name,
    open_atomic,
    suggest_file,
    write_atomically,
)


def test_a_write_replaces_the_old_content(tmp_path):
    file = tmp_path / "a.txt"
    for text in ("old", "new: ü\r\n"):
        write_atomically(file, text)
    assert file.read_bytes() == "new: ü\r\n".encode()
    assert list(tmp_path.iterdir()) == [file]


def test_a_failed_write_keeps_the_old_file_and_no_temporary(tmp_path):
    file = tmp_path / "a.txt"
    write_atomically(file, "old")
    with pytest.raises(RuntimeError), open_atomic(file) as out:
        out.write(b"half of it")
        raise RuntimeError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_mode_is_kept_and_a_new_file_has_the_default_one(tmp_path):
    plain, atomic = tmp_path / "plain", tmp_path / "atomic"
    plain.write_text("")
    write_atomically(atomic, "")
    assert plain.stat().st_mode == atomic.stat().st_mode
    atomic.chmod(0o640)
    write_atomically(atomic, "again")
    assert atomic.stat().st_mode & 0o777 == 0o640


def test_a_durable_write_syncs_the_file_before_and_the_folder_after_the_rename(
    tmp_path, monkeypatch
):
    calls = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), real_sync(handle)))
    monkeypatch.setattr(
        os, "replace", lambda source, target: (calls.append("rename"), real_replace(source, target))
    )
    write_atomically(tmp_path / "a", "")
    assert calls == ["sync", "rename", "sync"]
    calls.clear()
    write_atomically(tmp_path / "a", "", durable=False)
    assert calls == ["rename"]


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_files_in_shared_memory_are_no_devices():
    assert _is_in_dev(Path("/dev/stdout"))
    assert not _is_in_dev(Path("/dev/shm/runs/status.json"))


def test_a_text_is_the_name_of_an_existing_file_only(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("the cat")
    assert is_file_name(str(file))
    for text in (str(tmp_path), str(file) + "x", "two\nlines", "x" * 300, "a/" * 5_000, "\0", ""):
        assert not is_file_name(text)


def test_a_missing_file_has_a_guess_from_its_folder(tmp_path):
    (tmp_path / "trained" / "checkpoint-2").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("")
    for name, guess in (
        ("note.txt", "notes.txt"),
        ("traned", "trained"),
        ("traned/checkpoint-2", tmp_path / "trained" / "checkpoint-2"),
        ("traned/checkpoint-9", tmp_path / "trained"),
    ):
        assert suggest_file(tmp_path / name) == f"did you mean `{guess}`?", name
    for name in ("something.txt", "nowhere/notes.txt", "x.txt"):
        assert suggest_file(tmp_path / name) is None, name
        assert format_missing_file(tmp_path / name) == f"there is no file {tmp_path / name}"

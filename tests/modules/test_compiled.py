"""Compiled kernels find a place to be kept, whoever runs them."""

import os
from pathlib import Path

import pytest

from neural.modules.compiled import place_for_kernels


@pytest.fixture
def closed(monkeypatch, tmp_path):
    """Nothing can be written; new folders for a while come here."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")   # it is as it was afterwards, or all later processes compile anew
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("atexit.register", lambda *_, **__: None)
    return tmp_path


def test_where_nothing_can_be_kept_a_private_folder_is_made(closed):
    place_for_kernels(Path("/"), Path("/nobody/at/home"))
    (made,) = closed.iterdir()
    assert os.environ["NUMBA_CACHE_DIR"] == str(made)
    assert made.stat().st_mode & 0o077 == 0, "others could put code there"


def test_a_place_that_the_user_chose_stays(closed, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    place_for_kernels(Path("/"), Path("/"))
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"


def test_where_the_package_or_the_home_can_be_written_nothing_is_made(closed, monkeypatch):
    for writable in ("package", "home"):
        monkeypatch.setattr("os.access", lambda path, mode, writable=writable: Path(path).name == writable)
        (closed / writable).mkdir()
        place_for_kernels(closed / "package", closed / "home" / ".cache")
    assert "NUMBA_CACHE_DIR" not in os.environ

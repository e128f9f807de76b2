"""The cache folder of numba."""

import os
from pathlib import Path

import pytest

from neural.nn.kernel_dispatch import ensure_numba_cache_dir


@pytest.fixture
def read_only_system(monkeypatch, tmp_path):
    """No folder is writable; temporary folders are created in `tmp_path`."""
    # Set and deleted, so that monkeypatch restores it: later processes need the cache.
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("atexit.register", lambda *_, **__: None)
    return tmp_path


def test_without_a_writable_folder_a_private_one_is_created(read_only_system):
    ensure_numba_cache_dir(Path("/"), Path("/nobody/at/home"))
    (folder,) = read_only_system.iterdir()
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o077 == 0, "others could put code there"


def test_a_cache_folder_of_the_user_is_kept(read_only_system, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    ensure_numba_cache_dir(Path("/"), Path("/"))
    assert os.environ["NUMBA_CACHE_DIR"] == "mine"


def test_no_folder_is_created_if_package_or_home_is_writable(read_only_system, monkeypatch):
    for writable in ("package", "home"):
        monkeypatch.setattr(
            "os.access", lambda path, mode, writable=writable: Path(path).name == writable
        )
        (read_only_system / writable).mkdir()
        ensure_numba_cache_dir(read_only_system / "package", read_only_system / "home" / ".cache")
    assert "NUMBA_CACHE_DIR" not in os.environ

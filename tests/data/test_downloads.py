"""Downloads from a local server: complete, interrupted, resumed, wrong, refused."""

import io
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from neural.core import platform_support
from neural.core.errors import TaskError
from neural.data.downloads import DOWNLOADS, cache_folder, fetch
from tests.data.download_server import CONTENT, register_dataset


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_file_is_downloaded_once_and_cached(server, tmp_path):
    progress = []
    path = fetch("made_up", on_progress=lambda done, size: progress.append((done, size)))
    assert path.read_bytes() == CONTENT
    assert progress[-1] == (len(CONTENT), len(CONTENT))
    assert fetch("made_up") == path
    assert server.requested_ranges == [None]
    assert files(tmp_path / "cache") == ["made_up"]


def test_an_interrupted_download_resumes_where_it_stopped(server):
    server.break_after = len(CONTENT) // 3 + 1
    assert fetch("made_up").read_bytes() == CONTENT
    assert server.requested_ranges == [
        None,
        f"bytes={server.break_after}-",
        f"bytes={2 * server.break_after}-",
    ]


def test_a_failed_download_resumes_in_the_next_call(server, tmp_path):
    server.break_after = 1000
    with pytest.raises(
        TaskError,
        match=r"was interrupted 4 times: 4,000 of 1,024,256 bytes are saved, the next attempt "
        r"resumes",
    ):
        fetch("made_up")
    assert (tmp_path / "cache" / "made_up.part").read_bytes() == CONTENT[:4000]
    server.break_after = None
    assert fetch("made_up").read_bytes() == CONTENT
    assert server.requested_ranges[-1] == "bytes=4000-"


def test_a_server_without_ranges_starts_from_the_beginning(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(CONTENT[:777])
    server.ranges = False
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_file_with_a_wrong_checksum_is_deleted(server, tmp_path):
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(TaskError, match=r"wrong checksum; the file was deleted; .*NEURAL_DATA"):
        fetch("made_up")
    assert files(tmp_path / "cache") == []
    server.content = CONTENT
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_partial_file_of_another_download_is_discarded(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(b"x" * 500)
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_partial_file_longer_than_expected_is_deleted(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(CONTENT + b"more")
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_response_beyond_the_expected_size_is_cut_off(server):
    server.content = CONTENT * 3
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")


def test_status_416_discards_the_partial_file(server, tmp_path):
    server.content = CONTENT[:500]
    with pytest.raises(TaskError, match="was interrupted 4 times"):
        fetch("made_up")
    server.content = CONTENT
    assert fetch("made_up").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (503, 4)])
def test_a_refused_download_names_the_url_and_a_way_out(status, tries, server):
    server.status = status
    with pytest.raises(
        TaskError, match=rf"{server.url} was refused: {status} .*set NEURAL_DATA to its folder"
    ):
        fetch("made_up")
    assert len(server.requested_ranges) == tries


def test_offline_the_message_names_the_url_and_a_way_out(server, monkeypatch):
    register_dataset(monkeypatch, "http://127.0.0.1:9/file")  # a closed port
    with pytest.raises(
        TaskError,
        match=r"http://127.0.0.1:9/file cannot be reached: .*set NEURAL_DATA to its folder",
    ):
        fetch("made_up")


def test_an_archive_is_unpacked(server, tmp_path, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", CONTENT)
    server.content = packed.getvalue()
    register_dataset(monkeypatch, server.url, server.content, member="inside")
    assert fetch("made_up").read_bytes() == CONTENT
    assert files(tmp_path / "cache") == ["made_up"]


def test_a_local_copy_in_neural_data_comes_first(server, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    (tmp_path / "made_up.txt").write_text("mine")
    assert fetch("made_up") == tmp_path / "made_up.txt"
    assert server.requested_ranges == []
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path / "gone"))
    with pytest.raises(TaskError, match=r"NEURAL_DATA is .*gone, which is not a folder"):
        fetch("made_up")


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        TaskError, match=r"made_up cannot be saved in .*set NEURAL_CACHE to another folder"
    ):
        fetch("made_up")


def test_concurrent_fetches_download_once(server):
    with ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(fetch, ["made_up"] * 3))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert len(server.requested_ranges) == 1


def test_the_downloads_have_distinct_checksums_and_https_urls():
    entries = list(DOWNLOADS.values())
    assert all(
        re.fullmatch(r"[0-9a-f]{64}", entry.sha256) and entry.url.startswith("https://")
        for entry in entries
    )
    assert len({entry.sha256 for entry in entries}) == len(entries)


@pytest.mark.parametrize(
    ("system", "ending"),
    [
        ("IS_MACOS", "Library/Caches/neural"),
        ("IS_WINDOWS", "AppData/Local/neural"),
        (None, ".cache/neural"),
    ],
)
def test_the_cache_is_in_the_cache_folder_of_the_platform(system, ending, monkeypatch):
    for name in ("NEURAL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for flag in ("IS_MACOS", "IS_WINDOWS"):
        monkeypatch.setattr(platform_support, flag, flag == system)
    assert cache_folder().as_posix().endswith(ending)

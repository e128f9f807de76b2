"""Downloads from a server of our own: whole, broken off, resumed, wrong, refused."""

import io
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from neural.tasks.data import downloads
from neural.tasks.data.downloads import DOWNLOADS, cache, fetch
from neural.tasks.task import TaskError
from tests.tasks.data.download_server import CONTENT, known


def files(folder):
    return sorted(one.name for one in folder.iterdir() if one.suffix != ".lock")


def test_a_file_is_downloaded_once_and_kept(server, tmp_path):
    told = []
    path = fetch("made_up", progress=lambda done, size: told.append((done, size)))
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert fetch("made_up") == path
    assert server.asked == [None]
    assert files(tmp_path / "cache") == ["made_up"]


def test_a_connection_that_breaks_is_taken_up_again_where_it_broke(server):
    server.break_after = len(CONTENT) // 3 + 1
    assert fetch("made_up").read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={server.break_after}-", f"bytes={2 * server.break_after}-"]


def test_what_was_fetched_before_a_failure_is_kept_for_the_next_time(server, tmp_path):
    server.break_after = 1000
    with pytest.raises(TaskError, match=r"broke off 4 times: 4,000 of 1,024,256 bytes are kept, the next try goes on"):
        fetch("made_up")
    assert (tmp_path / "cache" / "made_up.part").read_bytes() == CONTENT[:4000]
    server.break_after = None
    assert fetch("made_up").read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=4000-"


def test_a_server_without_ranges_starts_from_the_beginning(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(CONTENT[:777])
    server.ranges = False
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_removed(server, tmp_path):
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(TaskError, match=r"gave a file with a wrong checksum; it was removed; .*NEURAL_DATA"):
        fetch("made_up")
    assert files(tmp_path / "cache") == []
    server.content = CONTENT
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_beginning_of_another_file_does_not_last(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(b"x" * 500)
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_refused_and_removed(server, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "made_up.part").write_bytes(CONTENT + b"more")
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")
    assert fetch("made_up").read_bytes() == CONTENT


def test_a_file_without_an_end_is_not_read_for_ever(server):
    server.content = CONTENT * 3
    with pytest.raises(TaskError, match="wrong checksum"):
        fetch("made_up")


def test_a_server_that_has_less_than_expected_says_416_and_the_part_goes(server, tmp_path):
    server.content = CONTENT[:500]
    with pytest.raises(TaskError, match="broke off 4 times"):
        fetch("made_up")
    server.content = CONTENT
    assert fetch("made_up").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (503, 4)])
def test_a_refusal_is_named_with_the_address_and_a_way_out(status, tries, server):
    server.status = status
    with pytest.raises(TaskError, match=rf"{server.url} was refused: {status} .*set NEURAL_DATA to its folder"):
        fetch("made_up")
    assert len(server.asked) == tries


def test_offline_the_message_names_the_address_and_a_way_out(server, monkeypatch):
    known(monkeypatch, "http://127.0.0.1:9/file")   # nobody listens there
    with pytest.raises(TaskError, match=r"http://127.0.0.1:9/file cannot be reached: .*set NEURAL_DATA to its folder"):
        fetch("made_up")


def test_an_archive_is_unpacked(server, tmp_path, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", CONTENT)
    server.content = packed.getvalue()
    known(monkeypatch, server.url, server.content, member="inside")
    assert fetch("made_up").read_bytes() == CONTENT
    assert files(tmp_path / "cache") == ["made_up"]


def test_a_copy_of_ones_own_comes_first(server, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    (tmp_path / "made_up.txt").write_text("mine")
    assert fetch("made_up") == tmp_path / "made_up.txt"
    assert server.asked == []
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path / "gone"))
    with pytest.raises(TaskError, match=r"NEURAL_DATA is .*gone, which is no folder"):
        fetch("made_up")


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(TaskError, match=r"made_up cannot be kept in .*NEURAL_CACHE names another folder"):
        fetch("made_up")


def test_several_who_ask_at_once_download_once(server):
    with ThreadPoolExecutor(3) as pool:   # the lock is per open file: it does not know threads from processes
        found = list(pool.map(fetch, ["made_up"] * 3))
    assert {path.read_bytes() for path in found} == {CONTENT}
    assert len(server.asked) == 1


def test_the_known_data_sets_have_sums_and_addresses_of_their_own():
    entries = list(DOWNLOADS.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", one.sha256) and one.url.startswith("https://") for one in entries)
    assert len({one.sha256 for one in entries}) == len(entries)


@pytest.mark.parametrize(("platform", "ending"), [("darwin", "Library/Caches/neural"), ("linux", ".cache/neural")])
def test_the_cache_is_where_the_platform_keeps_such_things(platform, ending, monkeypatch):
    for name in ("NEURAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(downloads.sys, "platform", platform)
    assert cache().as_posix().endswith(ending)

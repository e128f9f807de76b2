"""The text that a language model learns, wherever it lies; and its ids, in memory and on disk."""

import json

import numpy as np
import pytest

from neural.tasks import _encoded, _text
from neural.tasks._encoded import encoded
from neural.tasks._text import find_text
from neural.tasks.data.sources.handbook import handbook_text
from neural.tasks.task import TaskError


def decoded(found):
    """The ids turned back."""
    if found.characters is None:
        return found.ids.tobytes()
    return "".join(found.characters[one] for one in found.ids)


def text_at(path, units=None):
    return encoded(find_text(str(path), path.parent, units))


@pytest.fixture(params=["in memory", "on disk"])
def anywhere(request, tmp_path, monkeypatch):
    """Whether the text counts as long."""
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    if request.param == "on disk":
        monkeypatch.setattr(_encoded, "LONG", 1)
    return request.param


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
def test_ids_can_be_turned_back_however_the_text_was_read(anywhere, tmp_path, monkeypatch, piece):
    monkeypatch.setattr(_text, "PIECE", piece)
    text = "żółw, 亀 and 🐢: tortoise\nthree ways\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    characters, raw = text_at(tmp_path / "a.txt", "characters"), text_at(tmp_path / "a.txt", "bytes")
    assert decoded(characters) == text
    assert characters.characters == "".join(sorted(set(text)))
    assert [text.index(one) for one in characters.characters] == list(characters.first_seen)
    assert decoded(raw) == text.encode()
    assert characters.ids.dtype == raw.ids.dtype == np.uint8


def test_more_than_256_characters_take_two_bytes_each(anywhere, tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    found = text_at(tmp_path / "a.txt")
    assert (found.ids.dtype, decoded(found)) == (np.uint16, text)


@pytest.mark.parametrize("piece", [1, 4, 100])
def test_line_ends_of_windows_and_its_mark_are_no_characters_but_are_bytes(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(_text, "PIECE", piece)
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo\rend\r".encode())
    assert decoded(text_at(tmp_path / "a.txt")) == "one\ntwo\nend\n"
    assert decoded(text_at(tmp_path / "a.txt", "bytes")) == "\ufeffone\r\ntwo\rend\r".encode()


def test_a_folder_is_its_files_in_order_with_a_blank_line_between(anywhere, tmp_path):
    notes = tmp_path / "notes"
    for name, content in {"b.md": "two", "a/z.txt": "one", "c": "three", ".hidden/x": "no", ".y": "no"}.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(content)
    assert decoded(text_at(notes)) == "one\n\ntwo\n\nthree"
    assert decoded(text_at(notes, "bytes")) == b"one\n\ntwo\n\nthree"


def test_pictures_in_a_folder_of_notes_are_left_out_and_said(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\0\0")
    found = find_text(".", tmp_path, None)
    assert decoded(encoded(found)) == "text"
    assert "b.png left out" in found.remarks[0]
    assert decoded(encoded(find_text(".", tmp_path, "bytes"))) == b"text\n\n\x89PNG\0\0"


def test_the_handbook_is_there_at_once():
    found = encoded(find_text("handbook", None, None))
    assert decoded(found) == handbook_text()


def test_enwik8_is_bytes_unless_somebody_says_otherwise(tmp_path, monkeypatch):
    (tmp_path / "enwik8").write_bytes("é".encode())
    (tmp_path / "text8").write_bytes(b" a b")
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert decoded(encoded(find_text("enwik8", tmp_path, None))) == "é".encode()
    assert decoded(encoded(find_text("enwik8", tmp_path, "characters"))) == "é"
    assert decoded(encoded(find_text("text8", tmp_path, None))) == " a b"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.txt is empty"),
        (b"\xef\xbb\xbf", "a.txt is empty"),
        (b"caf\xe9 au lait", "a.txt is not UTF-8: byte 3 is 0xe9; save it as UTF-8, or write `units: bytes`"),
        (b"\xef\xbb\xbfab\xff", "a.txt is not UTF-8: byte 5 is 0xff"),
        (b"0123456\xc3", "a.txt is not UTF-8: byte 7 is 0xc3"),
        ("ż".encode() * 9 + b"\xc5a", "a.txt is not UTF-8: byte 18 is 0xc5"),
    ],
)
@pytest.mark.parametrize("piece", [1, 2, 5, 100])
def test_what_is_no_text_is_refused_and_the_byte_is_named(anywhere, tmp_path, monkeypatch, content, message, piece):
    monkeypatch.setattr(_text, "PIECE", piece)
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(TaskError) as refused:
        text_at(tmp_path / "a.txt")
    assert message in str(refused.value)
    assert not list(tmp_path.glob("cache/texts/.*"))   # nothing half made stays


def test_a_wrong_byte_in_a_folder_is_named_with_its_file(tmp_path):
    (tmp_path / "notes/deep").mkdir(parents=True)
    (tmp_path / "notes/a.txt").write_text("good")
    (tmp_path / "notes/deep/b.txt").write_bytes(b"bad \xff")
    with pytest.raises(TaskError, match=r"notes/deep/b.txt is not UTF-8: byte 4 is 0xff"):
        text_at(tmp_path / "notes")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("gone.txt", "there is no data `gone.txt`"),
        ("shakespear_char", "did you mean `shakespeare_char`?"),
        ("digits", "`digits` is no text; known by name are handbook, shakespeare_char, enwik8, text8"),
        ("empty", "empty has no text files"),
        ("pictures", "pictures has no text files, only a.png"),
    ],
)
def test_data_that_is_no_text_is_refused(tmp_path, data, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/a.png").write_bytes(b"\0")
    with pytest.raises(TaskError) as refused:
        find_text(data, tmp_path, None)
    assert message in str(refused.value)


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("secret")
    text = find_text("a.txt", tmp_path, None)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(TaskError, match=r"a.txt cannot be read: no such file"):
        encoded(text)


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A text that counts as long, its place, and where its ids are kept."""
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_encoded, "LONG", 1)
    path = tmp_path / "a.txt"
    path.write_text("first version")
    return path


def test_a_long_text_is_mapped_from_disk_and_read_once(long, monkeypatch):
    first = text_at(long)
    assert isinstance(first.ids.base, np.memmap)
    monkeypatch.setattr(_text.Text, "codes", lambda self: pytest.fail("read again"))
    again = text_at(long)
    assert np.array_equal(first.ids, again.ids)
    assert (first.characters, first.first_seen, first.fingerprint) == (
        again.characters, again.first_seen, again.fingerprint
    )  # fmt: skip


def test_a_text_that_changed_is_read_again_and_the_old_ids_stay_where_they_are_in_use(long):
    old = text_at(long)
    long.write_text("another version")
    new = text_at(long)
    assert (decoded(old), decoded(new)) == ("first version", "another version")
    assert old.fingerprint != new.fingerprint
    assert len(list(long.parent.glob("cache/texts/*"))) == 2   # one text, one entry: nothing piles up


@pytest.mark.parametrize("broken", ["json", "npy", "both"])
def test_a_broken_entry_is_made_again(long, broken):
    text_at(long)
    for path in long.parent.glob("cache/texts/*"):
        if broken in (path.suffix[1:], "both"):
            path.write_bytes(path.read_bytes()[:-3])
    assert decoded(text_at(long)) == "first version"
    assert decoded(text_at(long)) == "first version"


def test_a_text_that_changes_while_it_is_read_is_refused(anywhere, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("before")
    codes = _text.Text.codes

    def growing(self):
        yield from codes(self)
        with path.open("a") as file:
            file.write(" and after")

    monkeypatch.setattr(_text.Text, "codes", growing)
    with pytest.raises(TaskError, match=r"a.txt changed while it was read; start again"):
        text_at(path)


def test_a_cache_that_cannot_be_written_says_which(long, monkeypatch):
    (long.parent / "cache").write_text("a file, no folder")
    with pytest.raises(TaskError, match=r"cannot be kept in .*cache/texts: .*; NEURAL_CACHE names another folder"):
        text_at(long)


def test_the_fingerprint_knows_a_text_by_what_it_says(anywhere, tmp_path):
    for name, content in {"a": "abcabd", "same": "abcabd", "other": "abcabe", "moved": "bcdbca"}.items():
        (tmp_path / name).write_text(content)
    prints = {name: text_at(tmp_path / name).fingerprint for name in ("a", "same", "other", "moved")}
    assert prints["a"] == prints["same"]
    assert len(set(prints.values())) == 3
    assert text_at(tmp_path / "a", "bytes").fingerprint != prints["a"]


def test_what_is_kept_on_disk_is_plain_numpy_and_json(long):
    text_at(long)
    (ids,), (about,) = long.parent.glob("cache/texts/*.npy"), long.parent.glob("cache/texts/*.json")
    facts = json.loads(about.read_text())
    assert "".join(facts["characters"][one] for one in np.load(ids)) == "first version"
    assert facts["count"] == 13

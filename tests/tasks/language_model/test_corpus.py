"""Texts of language models from files, folders and datasets; ids in memory and on disk."""

import json

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.sources.handbook import read_handbook
from neural.tasks.language_model import corpus
from neural.tasks.language_model.corpus import encode_text, find_text


def decode(encoded):
    """The text of the ids."""
    if encoded.characters is None:
        return encoded.ids.tobytes()
    return "".join(encoded.characters[character] for character in encoded.ids)


def encode_file(path, units=None):
    return encode_text(find_text(str(path), path.parent, units))


@pytest.fixture(params=["in memory", "on disk"])
def storage(request, tmp_path, monkeypatch):
    """Where ids are stored; "on disk" treats every text as long."""
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    if request.param == "on disk":
        monkeypatch.setattr(corpus, "MIN_CACHED_BYTES", 1)
    return request.param


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 1 << 20])
def test_ids_decode_to_the_text_for_any_chunk_size(storage, tmp_path, monkeypatch, chunk_bytes):
    monkeypatch.setattr(corpus, "READ_CHUNK_BYTES", chunk_bytes)
    text = "żółw, 亀 and 🐢: tortoise\nthree ways\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    characters, raw = (
        encode_file(tmp_path / "a.txt", "characters"),
        encode_file(tmp_path / "a.txt", "bytes"),
    )
    assert decode(characters) == text
    assert characters.characters == "".join(sorted(set(text)))
    assert [text.index(character) for character in characters.characters] == list(
        characters.first_seen
    )
    assert decode(raw) == text.encode()
    assert characters.ids.dtype == raw.ids.dtype == np.uint8


def test_more_than_256_characters_take_two_bytes_each(storage, tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    encoded = encode_file(tmp_path / "a.txt")
    assert (encoded.ids.dtype, decode(encoded)) == (np.uint16, text)


@pytest.mark.parametrize("chunk_bytes", [1, 4, 100])
def test_crlf_and_byte_order_mark_are_normalised_in_characters_but_not_in_bytes(
    tmp_path, monkeypatch, chunk_bytes
):
    monkeypatch.setattr(corpus, "READ_CHUNK_BYTES", chunk_bytes)
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo\rend\r".encode())
    assert decode(encode_file(tmp_path / "a.txt")) == "one\ntwo\nend\n"
    assert decode(encode_file(tmp_path / "a.txt", "bytes")) == "\ufeffone\r\ntwo\rend\r".encode()


def test_a_folder_is_read_file_by_file_separated_by_blank_lines(storage, tmp_path):
    notes = tmp_path / "notes"
    for name, content in {
        "b.md": "two",
        "a/z.txt": "one",
        "c": "three",
        ".hidden/x": "no",
        ".y": "no",
    }.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(content)
    assert decode(encode_file(notes)) == "one\n\ntwo\n\nthree"
    assert decode(encode_file(notes, "bytes")) == b"one\n\ntwo\n\nthree"


def test_binary_files_in_a_folder_are_ignored_and_noted(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\0\0")
    encoded = find_text(".", tmp_path, None)
    assert decode(encode_text(encoded)) == "text"
    assert "b.png ignored: not text" in encoded.notes[0]
    assert decode(encode_text(find_text(".", tmp_path, "bytes"))) == b"text\n\n\x89PNG\0\0"


def test_the_handbook_needs_no_download():
    encoded = encode_text(find_text("handbook", None, None))
    assert decode(encoded) == read_handbook()


def test_enwik8_is_read_as_bytes_by_default(tmp_path, monkeypatch):
    (tmp_path / "enwik8").write_bytes("é".encode())
    (tmp_path / "text8").write_bytes(b" a b")
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert decode(encode_text(find_text("enwik8", tmp_path, None))) == "é".encode()
    assert decode(encode_text(find_text("enwik8", tmp_path, "characters"))) == "é"
    assert decode(encode_text(find_text("text8", tmp_path, None))) == " a b"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(storage, tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("\ufeffthe cat".encode(encoding))
    with pytest.raises(TaskError, match=r"a.txt is UTF-16; .* `iconv -f utf-16 -t utf-8`"):
        encode_file(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.txt is empty"),
        (b"\xef\xbb\xbf", "a.txt is empty"),
        (
            b"caf\xe9 au lait",
            "a.txt is not UTF-8: byte 3 is 0xe9; save it as UTF-8, such as with "
            "`iconv -f cp1252 -t utf-8`, or write `units: bytes` (`--set units=bytes`)",
        ),
        (b"\xef\xbb\xbfab\xff", "a.txt is not UTF-8: byte 5 is 0xff"),
        (b"0123456\xc3", "a.txt is not UTF-8: byte 7 is 0xc3"),
        ("ż".encode() * 9 + b"\xc5a", "a.txt is not UTF-8: byte 18 is 0xc5"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 2, 5, 100])
def test_invalid_utf8_is_refused_with_the_position_of_the_byte(
    storage, tmp_path, monkeypatch, content, message, chunk_bytes
):
    monkeypatch.setattr(corpus, "READ_CHUNK_BYTES", chunk_bytes)
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(TaskError) as caught:
        encode_file(tmp_path / "a.txt")
    assert message in str(caught.value)
    assert not list(tmp_path.glob("cache/texts/.*"))  # no temporary file remains


def test_a_wrong_byte_in_a_folder_is_named_with_its_file(tmp_path):
    (tmp_path / "notes/deep").mkdir(parents=True)
    (tmp_path / "notes/a.txt").write_text("good")
    (tmp_path / "notes/deep/b.txt").write_bytes(b"bad \xff")
    with pytest.raises(TaskError, match=r"notes/deep/b.txt is not UTF-8: byte 4 is 0xff"):
        encode_file(tmp_path / "notes")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("gone.txt", "there is no data `gone.txt`"),
        ("shakespear_char", "did you mean `shakespeare_char`?"),
        (
            "digits",
            "`digits` is not a text; known texts are handbook, shakespeare_char, enwik8, text8",
        ),
        ("empty", "empty has no text files"),
        ("pictures", "pictures has no text files, only a.png"),
    ],
)
def test_data_without_text_is_refused(tmp_path, data, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/a.png").write_bytes(b"\0")
    with pytest.raises(TaskError) as caught:
        find_text(data, tmp_path, None)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("secret")
    text = find_text("a.txt", tmp_path, None)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(TaskError, match=r"a.txt cannot be read: no such file"):
        encode_text(text)


@pytest.fixture
def long_text(tmp_path, monkeypatch):
    """Path of a text that counts as long, so that its ids are cached on disk."""
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus, "MIN_CACHED_BYTES", 1)
    path = tmp_path / "a.txt"
    path.write_text("first version")
    return path


def test_a_long_text_is_encoded_once_and_memory_mapped(long_text, monkeypatch):
    first = encode_file(long_text)
    assert isinstance(first.ids.base, np.memmap)
    monkeypatch.setattr(corpus.TextCorpus, "iter_codes", lambda self: pytest.fail("read again"))
    cached = encode_file(long_text)
    assert np.array_equal(first.ids, cached.ids)
    assert (first.characters, first.first_seen, first.fingerprint) == (
        cached.characters,
        cached.first_seen,
        cached.fingerprint,
    )


def test_a_changed_text_is_encoded_again_and_ids_in_use_stay_valid(long_text):
    old_text = encode_file(long_text)
    long_text.write_text("another version")
    new_text = encode_file(long_text)
    assert (decode(old_text), decode(new_text)) == ("first version", "another version")
    assert old_text.fingerprint != new_text.fingerprint
    # One cache entry (two files) per text, not per version.
    assert len(list(long_text.parent.glob("cache/texts/*"))) == 2


@pytest.mark.parametrize("broken", ["json", "npy", "both"])
def test_a_damaged_cache_entry_is_rebuilt(long_text, broken):
    encode_file(long_text)
    for path in long_text.parent.glob("cache/texts/*"):
        if broken in (path.suffix[1:], "both"):
            path.write_bytes(path.read_bytes()[:-3])
    assert decode(encode_file(long_text)) == "first version"
    assert decode(encode_file(long_text)) == "first version"


def test_a_text_that_changes_while_it_is_read_is_refused(storage, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("before")
    codes = corpus.TextCorpus.iter_codes

    def growing(self):
        yield from codes(self)
        with path.open("a") as file:
            file.write(" and after")

    monkeypatch.setattr(corpus.TextCorpus, "iter_codes", growing)
    with pytest.raises(TaskError, match=r"a.txt changed while it was read; start again"):
        encode_file(path)


def test_a_cache_that_cannot_be_written_is_named(long_text, monkeypatch):
    (long_text.parent / "cache").write_text("a file, not a folder")
    with pytest.raises(
        TaskError,
        match=r"cannot be cached in .*cache/texts: .*; set NEURAL_CACHE to another folder",
    ):
        encode_file(long_text)


def test_the_fingerprint_depends_on_the_contents_alone(storage, tmp_path):
    for name, content in {
        "a": "abcabd",
        "same": "abcabd",
        "other": "abcabe",
        "moved": "bcdbca",
    }.items():
        (tmp_path / name).write_text(content)
    fingerprints = {
        name: encode_file(tmp_path / name).fingerprint for name in ("a", "same", "other", "moved")
    }
    assert fingerprints["a"] == fingerprints["same"]
    assert len(set(fingerprints.values())) == 3
    assert encode_file(tmp_path / "a", "bytes").fingerprint != fingerprints["a"]


def test_the_cache_holds_numpy_and_json_files(long_text):
    encode_file(long_text)
    (ids,), (metadata_path,) = (
        long_text.parent.glob("cache/texts/*.npy"),
        long_text.parent.glob("cache/texts/*.json"),
    )
    metadata = json.loads(metadata_path.read_text())
    assert (
        "".join(metadata["characters"][character] for character in np.load(ids)) == "first version"
    )
    assert metadata["count"] == 13

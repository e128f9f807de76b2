"""Text files of any encoding round-trip byte for byte; binary files are refused."""

import io
from pathlib import Path

import pytest

from neural.core.errors import TaskError
from neural.tasks.segmentation.reader import decode_text, read_text

TEXT = "Ein Café.\r\nZwei\rdrei\n\tvier\f"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TEXT.encode(), "utf-8"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "utf-8"),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), "utf-16-le"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16-be"),
        (b"\xff\xfe\0\0" + TEXT.encode("utf-32-le"), "utf-32-le"),
        (b"\0\0\xfe\xff" + TEXT.encode("utf-32-be"), "utf-32-be"),
        (TEXT.encode("latin-1"), "latin-1"),
    ],
)
def test_every_encoding_round_trips_byte_for_byte(data, encoding):
    raw = decode_text(data, "a.txt")
    assert (raw.encoding, raw.encode()) == (encoding, data)
    assert raw.text.removeprefix("\ufeff") == TEXT


def test_a_fallback_encoding_is_noted():
    assert decode_text(b"caf\xe9", "menu.txt").notes == (
        "menu.txt is not UTF-8 (byte 3): read as Latin-1",
    )
    assert not decode_text("café".encode(), "menu.txt").notes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.txt is empty"),
        (b" \n\t\n", "a.txt is empty"),
        (b"\xef\xbb\xbf", "a.txt is empty"),
        (b"PK\x03\x04\x00\x00", "a.txt is not a text file: it has zero bytes"),
        (b"\xff\xfea", "a.txt begins as utf-16-le but is invalid at byte 2"),
    ],
)
def test_empty_and_binary_data_are_refused(data, message):
    with pytest.raises(TaskError, match=message):
        decode_text(data, "a.txt")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TaskError, match=r"none.txt cannot be read: no such file"):
        read_text(tmp_path / "none.txt")


class EndlessFile(io.BytesIO):
    """Stands for /dev/zero."""

    def read(self, size=-1):
        assert size >= 0, "reading to the end would never return"
        return b"\0" * size


def test_an_endless_binary_file_is_refused_by_its_first_bytes(monkeypatch):
    monkeypatch.setattr(Path, "open", lambda self, mode: EndlessFile())
    with pytest.raises(TaskError, match="zero is not a text file"):
        read_text(Path("/dev/zero"))

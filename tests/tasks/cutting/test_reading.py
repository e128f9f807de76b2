"""Files of any encoding come back byte for byte; what is no text is refused by its name."""

import io
from pathlib import Path

import pytest

from neural.tasks.cutting.reading import decode, read_raw
from neural.tasks.task import TaskError

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
def test_every_encoding_comes_back_byte_for_byte(data, encoding):
    raw = decode(data, "a.txt")
    assert (raw.encoding, raw.encode()) == (encoding, data)
    assert raw.text.removeprefix("\ufeff") == TEXT


def test_another_encoding_is_told():
    assert decode(b"caf\xe9", "menu.txt").remarks == ("menu.txt is not UTF-8 (byte 3): read as Latin-1",)
    assert not decode("café".encode(), "menu.txt").remarks


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.txt is empty"),
        (b" \n\t\n", "a.txt is empty"),
        (b"\xef\xbb\xbf", "a.txt is empty"),
        (b"PK\x03\x04\x00\x00", "a.txt is no text: it has zero bytes"),
        (b"\xff\xfea", "a.txt begins as utf-16-le and is broken at byte 2"),
    ],
)
def test_what_is_no_text_is_refused(data, message):
    with pytest.raises(TaskError, match=message):
        decode(data, "a.txt")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TaskError, match=r"none.txt cannot be read: no such file"):
        read_raw(tmp_path / "none.txt")


class Endless(io.BytesIO):
    """/dev/zero."""

    def read(self, size=-1):
        assert size >= 0, "it has no end"
        return b"\0" * size


def test_what_has_no_end_is_refused_by_its_beginning(monkeypatch):
    monkeypatch.setattr(Path, "open", lambda self, mode: Endless())
    with pytest.raises(TaskError, match="zero is no text"):
        read_raw(Path("/dev/zero"))

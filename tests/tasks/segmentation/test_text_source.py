"""Texts that are read in chunks: the same as those that are read as a whole."""

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.errors import TaskError
from neural.tasks.segmentation import text_source
from neural.tasks.segmentation.reader import decode_text
from neural.tasks.segmentation.text_source import (
    make_text_source,
    open_text_source,
    spool_text_source,
)
from tests.tasks.segmentation.segmentations import quick_settings

ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"]


@quick_settings
@given(
    st.text("aé世\U0001f600 \n", min_size=1).filter(str.strip),
    st.sampled_from(ENCODINGS),
    st.binary(max_size=3),
    st.integers(1, 7),
)
def test_chunks_are_decoded_as_the_whole(text, encoding, suffix, size):
    data = text.encode(encoding, errors="replace") + suffix
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_source, "CHUNK_BYTES", size)
        patch.setattr(text_source, "BINARY_PROBE_BYTES", 3 + size)
        try:
            expected = decode_text(data, "text")
        except TaskError as error:
            if "is empty" in str(error) or "zero bytes" in str(error):
                return  # found later, by the splitting into elements; or after the probe
            with pytest.raises(TaskError, match="invalid at byte"):
                spool_text_source(io.BytesIO(data), "text")
            return
        source = spool_text_source(io.BytesIO(data), "text")
        read = []
        assert "".join(source.read_chunks(read.append)) == expected.text
    assert (source.encoding, source.notes) == (expected.encoding, expected.notes)
    assert sum(read) == source.size == len(data)


def test_a_file_is_read_with_another_name_and_encoding(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"Caf\xe9.")
    source = open_text_source(path, "folder/notes.txt")
    assert source.name == "folder/notes.txt"
    assert source.notes == ("folder/notes.txt is not UTF-8 (byte 3): read as Latin-1",)
    assert "".join(source.read_chunks()) == "Café."


def test_files_that_are_no_texts_are_errors(tmp_path):
    with pytest.raises(TaskError, match=r"gone\.txt cannot be read: no such file"):
        open_text_source(tmp_path / "gone.txt")
    with pytest.raises(TaskError, match="cannot be read"):
        open_text_source(tmp_path)
    (tmp_path / "binary").write_bytes(b"ab\0")
    with pytest.raises(TaskError, match="binary is not a text file"):
        open_text_source(tmp_path / "binary")


def test_a_text_in_memory_is_a_source():
    source = make_text_source("Héllo \ud800", "text")
    assert "".join(source.read_chunks()) == "Héllo ?"
    with pytest.raises(TaskError, match="is not a text file"):
        make_text_source("a\0b", "text")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("From a pipe.",))
    writer.start()
    source = open_text_source(path)
    writer.join()
    assert "".join(source.read_chunks()) == "From a pipe."

"""Arrays as numpy saves them, read without believing a word of the header."""

import zipfile

import numpy as np
import pytest

from neural.tasks.data.array_files import array_in, arrays_in, is_archive, mapped
from neural.tasks.task import TaskError

ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3), "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "big": np.arange(5, dtype=">i4"), "bools": np.array([True, False]), "words": np.array(["ab", "c"]),
    "one": np.array(7.5), "none": np.empty((0, 4)), "halves": np.ones(3, np.float16),
}  # fmt: skip


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_wrote_comes_back(save, tmp_path):
    save(tmp_path / "d.npz", **ARRAYS)
    found = arrays_in(tmp_path / "d.npz")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable


@pytest.mark.parametrize("name", ARRAYS)
def test_one_array_is_read_or_mapped(name, tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS[name])
    assert not is_archive(tmp_path / "x.npy")
    for read in (array_in, mapped):
        np.testing.assert_array_equal(read(tmp_path / "x.npy"), ARRAYS[name])
    assert isinstance(mapped(tmp_path / "x.npy"), np.memmap) == bool(ARRAYS[name].size)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-1], r"it says that its shape is \(2, 3\), which takes 24 bytes; 23 are there"),
        (lambda data: data.replace(b"(2, 3)", b"(2,-3)"), r"it says that its shape is \(2, -3\)"),
        (lambda data: data.replace(b"'<f4'", b"'|O' "), "it holds Python objects"),
        (lambda data: data.replace(b"'<f4'", b"'V4' "), r"it is an array of \|V4; save plain numbers"),
        (lambda data: data.replace(b"NUMPY\x01", b"NUMPY\x03"), r"version 3.0 of numpy's format"),
        (lambda data: data.replace(b"{", b"-" * 40), "cannot be read"),
        (lambda data: b"", "cannot be read"),
    ],
)
def test_a_header_that_lies_is_refused(change, says, tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS["floats"])
    (tmp_path / "x.npy").write_bytes(change((tmp_path / "x.npy").read_bytes()))
    for read in (array_in, mapped):
        with pytest.raises(TaskError, match=says):
            read(tmp_path / "x.npy")


def test_an_archive_that_numpy_did_not_pack_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", b"")
    with pytest.raises(TaskError, match=r"x\.npy is packed in a way that numpy does not use"):
        arrays_in(tmp_path / "d.npz")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TaskError, match=r"d\.npz cannot be read: .*No such file"):
        arrays_in(tmp_path / "d.npz")

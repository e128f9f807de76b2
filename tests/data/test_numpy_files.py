"""`.npz` and `.npy` files are read without trusting their headers."""

import zipfile

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.numpy_files import is_archive, load_npy, load_npz, map_npy

ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "big": np.arange(5, dtype=">i4"),
    "bools": np.array([True, False]),
    "words": np.array(["ab", "c"]),
    "one": np.array(7.5),
    "none": np.empty((0, 4)),
    "halves": np.ones(3, np.float16),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_saved_by_numpy_are_read_back(save, tmp_path):
    save(tmp_path / "d.npz", **ARRAYS)
    loaded = load_npz(tmp_path / "d.npz")
    assert list(loaded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].flags.writeable


@pytest.mark.parametrize("name", ARRAYS)
def test_one_array_is_read_or_mapped(name, tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS[name])
    assert not is_archive(tmp_path / "x.npy")
    for read in (load_npy, map_npy):
        np.testing.assert_array_equal(read(tmp_path / "x.npy"), ARRAYS[name])
    assert isinstance(map_npy(tmp_path / "x.npy"), np.memmap) == bool(ARRAYS[name].size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data[:-1],
            r"it claims the shape \(2, 3\), which takes 24 bytes; the file has 23",
        ),
        (lambda data: data.replace(b"(2, 3)", b"(2,-3)"), r"it claims the shape \(2, -3\)"),
        (lambda data: data.replace(b"'<f4'", b"'|O' "), "it holds Python objects"),
        (
            lambda data: data.replace(b"'<f4'", b"'V4' "),
            r"it is an array of \|V4; save plain numbers",
        ),
        (lambda data: data.replace(b"NUMPY\x01", b"NUMPY\x03"), r"version 3.0 of the .npy format"),
        (lambda data: data.replace(b"{", b"-" * 40), "cannot be read"),
        (lambda data: b"", "cannot be read"),
    ],
)
def test_a_false_header_is_refused(change, message, tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS["floats"])
    (tmp_path / "x.npy").write_bytes(change((tmp_path / "x.npy").read_bytes()))
    for read in (load_npy, map_npy):
        with pytest.raises(TaskError, match=message):
            read(tmp_path / "x.npy")


def test_an_archive_with_an_unknown_compression_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", b"")
    with pytest.raises(TaskError, match=r"x\.npy uses a compression that numpy does not use"):
        load_npz(tmp_path / "d.npz")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TaskError, match=r"d\.npz cannot be read: .*No such file"):
        load_npz(tmp_path / "d.npz")

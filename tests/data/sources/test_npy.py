"""One .npy file per array, memory-mapped."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.sources.npy import Npy
from tests.tasks.networks import DENSE

X, Y = np.ones((5, 7)), np.arange(5)


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    assert Npy.matches(tmp_path)
    examples = Npy.read(tmp_path, DENSE)
    assert examples.data_name == tmp_path.name
    assert examples.train["y"].tolist() == Y.tolist()


def test_the_arrays_are_memory_mapped(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    assert isinstance(Npy.read(tmp_path, DENSE).train["x"], np.memmap)


def test_files_may_be_named_one_by_one(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", Y)
    location = {"x": tmp_path / "a.npy", "y": tmp_path / "b.npy"}
    assert Npy.matches(location)
    examples = Npy.read(location, DENSE)
    assert examples.data_name == "a.npy, b.npy"
    assert examples.train["x"].shape == (5, 7)


def test_a_file_that_is_not_an_array_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.npy").write_bytes(b"torn")
    with pytest.raises(TaskError, match=r"y.npy cannot be read"):
        Npy.read(tmp_path, DENSE)
    np.savez(tmp_path / "all.npz", x=X)
    with pytest.raises(
        TaskError,
        match=r'all.npz is an .npz archive, .*: write `data: "all.npz"` instead of a mapping',
    ):
        Npy.read({"x": tmp_path / "x.npy", "y": tmp_path / "all.npz"}, DENSE)

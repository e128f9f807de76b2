"""One file per array, read from disk as needed."""

import numpy as np
import pytest

from neural.tasks.data.sources.npy import Npy
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE

X, Y = np.ones((5, 7)), np.arange(5)


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    assert Npy.fits(tmp_path)
    found = Npy.read(tmp_path, DENSE)
    assert found.where == tmp_path.name
    assert found.train["y"].tolist() == Y.tolist()


def test_the_arrays_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    assert isinstance(Npy.read(tmp_path, DENSE).train["x"], np.memmap)


def test_files_may_be_named_one_by_one(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", Y)
    where = {"x": tmp_path / "a.npy", "y": tmp_path / "b.npy"}
    assert Npy.fits(where)
    found = Npy.read(where, DENSE)
    assert found.where == "a.npy, b.npy"
    assert found.train["x"].shape == (5, 7)


def test_what_is_no_array_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.npy").write_bytes(b"torn")
    with pytest.raises(TaskError, match=r"y.npy cannot be read"):
        Npy.read(tmp_path, DENSE)
    np.savez(tmp_path / "all.npz", x=X)
    with pytest.raises(TaskError, match=r'all.npz is no .npy file; an .npz is given alone: `data: "all.npz"`'):
        Npy.read({"x": tmp_path / "x.npy", "y": tmp_path / "all.npz"}, DENSE)

"""Arrays in one file."""

import numpy as np
import pytest

from neural.tasks.data.sources.npz import Npz
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, TRANSLATE

X, Y = np.ones((5, 7)), np.arange(5)


def written(folder, **arrays):
    np.savez(folder / "d.npz", **arrays)
    return folder / "d.npz"


def test_arrays_are_known_by_their_names(tmp_path):
    mask = np.ones((5, 7))
    found = Npz.read(written(tmp_path, x=X, y=Y, mask=mask, x_valid=X[:2], y_valid=Y[:2]), DENSE)
    assert found.where == "d.npz"
    assert {name: array.shape for name, array in found.train.items()} == {"x": (5, 7), "y": (5,), "mask": (5, 7)}
    assert {name: array.shape for name, array in found.valid.items()} == {"x": (2, 7), "y": (2,)}
    assert found.remarks == ()


def test_the_names_of_other_packages_are_understood_and_said(tmp_path):
    found = Npz.read(written(tmp_path, x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2], author=Y), DENSE)
    assert len(found.train["y"]) == 5
    assert len(found.valid["y"]) == 2
    assert found.remarks == ("d.npz: `author` is not used", "d.npz: `x_test`, `y_test` are used for validation")


def test_a_network_with_two_sequences_reads_source_and_target_by_either_name(tmp_path):
    for names in (("source", "target"), ("x", "y")):
        found = Npz.read(written(tmp_path, **dict.fromkeys(names, X)), TRANSLATE)
        assert set(found.train) == {"source", "target"}
        assert found.valid is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "d.npz: there is no array `y`; d.npz holds x"),
        ({"x": X, "y_": Y}, "d.npz: there is no array `y`; did you mean `y_`?"),
        ({"x": X, "y": Y, "x_valid": X}, "d.npz: there is no array `y_valid`; d.npz holds x, y, x_valid"),
        ({}, "d.npz: there is no array `x`; d.npz holds nothing"),
    ],
)
def test_an_array_that_is_missing_is_named(arrays, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        Npz.read(written(tmp_path, **arrays), DENSE)
    assert str(caught.value) == message


def test_python_objects_are_not_unpickled(tmp_path):
    with pytest.raises(TaskError, match=r"d.npz cannot be read: it holds Python objects"):
        Npz.read(written(tmp_path, x=np.array([{}], dtype=object), y=Y), DENSE)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_archive_is_refused(content, tmp_path):
    (tmp_path / "d.npz").write_bytes(content)
    with pytest.raises(TaskError, match=r"d.npz cannot be read"):
        Npz.read(tmp_path / "d.npz", DENSE)

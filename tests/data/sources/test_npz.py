"""Arrays in one .npz file."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.sources.npz import Npz
from neural.data.table_columns import TableSettings
from tests.tasks.networks import DENSE, TRANSLATE

X, Y = np.ones((5, 7)), np.arange(5)


def save_arrays(folder, **arrays):
    np.savez(folder / "d.npz", **arrays)
    return folder / "d.npz"


def test_arrays_are_sorted_by_their_names(tmp_path):
    mask = np.ones((5, 7))
    examples = Npz.read(
        save_arrays(tmp_path, x=X, y=Y, mask=mask, x_valid=X[:2], y_valid=Y[:2]), DENSE
    )
    assert examples.data_name == "d.npz"
    assert {name: array.shape for name, array in examples.train.items()} == {
        "x": (5, 7),
        "y": (5,),
        "mask": (5, 7),
    }
    assert {name: array.shape for name, array in examples.valid.items()} == {"x": (2, 7), "y": (2,)}
    assert examples.notes == ()


def test_keras_array_names_are_accepted_and_noted(tmp_path):
    examples = Npz.read(
        save_arrays(tmp_path, x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2], author=Y), DENSE
    )
    assert len(examples.train["y"]) == 5
    assert len(examples.valid["y"]) == 2
    assert examples.notes == (
        "d.npz: `author` is not used",
        "d.npz: `x_test`, `y_test` are used for validation",
    )


def test_a_network_with_two_sequences_reads_source_and_target_by_either_name(tmp_path):
    for names in (("source", "target"), ("x", "y")):
        examples = Npz.read(save_arrays(tmp_path, **dict.fromkeys(names, X)), TRANSLATE)
        assert set(examples.train) == {"source", "target"}
        assert examples.valid is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "d.npz: there is no array `y`; d.npz holds x"),
        ({"x": X, "y_": Y}, "d.npz: there is no array `y`; did you mean `y_`?"),
        (
            {"x": X, "y": Y, "x_valid": X},
            "d.npz: there is no array `y_valid`; d.npz holds x, y, x_valid",
        ),
        ({}, "d.npz: there is no array `x`; d.npz holds no arrays"),
    ],
)
def test_a_missing_array_is_named(arrays, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        Npz.read(save_arrays(tmp_path, **arrays), DENSE)
    assert str(caught.value) == message


def test_python_objects_are_not_unpickled(tmp_path):
    with pytest.raises(TaskError, match=r"d.npz cannot be read: it holds Python objects"):
        Npz.read(save_arrays(tmp_path, x=np.array([{}], dtype=object), y=Y), DENSE)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 torn"])
def test_a_file_that_is_not_an_archive_is_refused(content, tmp_path):
    (tmp_path / "d.npz").write_bytes(content)
    with pytest.raises(TaskError, match=r"d.npz cannot be read"):
        Npz.read(tmp_path / "d.npz", DENSE)


def test_words_as_labels_become_named_classes(tmp_path):
    words = np.array(["cat", "owl", "cat", "dog", "owl"])
    path = save_arrays(tmp_path, x=X, y=words, x_valid=X[:2], y_valid=words[[3, 0]])
    examples = Npz.read(path, DENSE)
    assert examples.classes == ("cat", "dog", "owl")
    assert examples.train["y"].tolist() == [0, 2, 0, 1, 2]
    assert examples.valid["y"].tolist() == [1, 0]
    as_bytes = Npz.read(save_arrays(tmp_path, x=X, y=words.astype("S")[:, None]), DENSE)
    assert as_bytes.classes == examples.classes
    assert as_bytes.train["y"].tolist() == [0, 2, 0, 1, 2]


def test_a_word_that_only_the_validation_labels_have_is_refused(tmp_path):
    path = save_arrays(
        tmp_path, x=X, y=np.array(list("abbaa")), x_valid=X[:2], y_valid=np.array(["a", "c"])
    )
    with pytest.raises(TaskError, match=r"`y_valid` at \[1\]: `c` is not a class of the training"):
        Npz.read(path, DENSE)


def test_labels_that_are_python_objects_are_refused_with_a_way_out(tmp_path):
    path = save_arrays(tmp_path, x=X, y=np.array(["cat", "dog", None, "cat", "dog"], dtype=object))
    with pytest.raises(TaskError, match=r"holds Python objects, .* words with `y.astype\(str\)`"):
        Npz.read(path, DENSE)


def test_settings_of_columns_need_rows_of_columns(tmp_path):
    path = save_arrays(tmp_path, x=np.ones((5, 3, 2)), y=Y)
    with pytest.raises(TaskError, match=r"need rows of columns, but `x` is \(5, 3, 2\)"):
        Npz.read_table(path, DENSE, TableSettings(standardize=True))
    with pytest.raises(TaskError, match="the targets are an array, `y`"):
        Npz.read_table(save_arrays(tmp_path, x=X, y=Y), DENSE, TableSettings(target="a"))

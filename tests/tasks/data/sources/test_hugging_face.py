"""Data sets that `datasets` wrote."""

import sys

import datasets
import numpy as np
import pytest
from PIL import Image

from neural.tasks.data.sources.hugging_face import HuggingFace
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, READER, made


@pytest.fixture(autouse=True)
def no_bars():
    datasets.disable_progress_bars()


def saved(folder, **columns):
    datasets.Dataset.from_dict(columns).save_to_disk(folder / "set")
    return folder / "set"


def test_numbers_with_labels(tmp_path):
    where = saved(tmp_path, features=np.ones((4, 7)).tolist(), label=[0, 1, 2, 0])
    assert HuggingFace.fits(where)
    found = HuggingFace.read(where, DENSE)
    assert found.where == "set"
    assert found.train["x"].shape == (4, 7)
    assert found.train["y"].tolist() == [0, 1, 2, 0]


def test_ids_bring_their_mask_and_classes_their_names(tmp_path):
    table = datasets.Dataset.from_dict(
        {"text": ["a", "b"], "input_ids": [[1] * 7] * 2, "attention_mask": [[1] * 6 + [0]] * 2, "label": [1, 0]}
    ).cast_column("label", datasets.ClassLabel(names=["bad", "good"]))
    datasets.DatasetDict({"train": table, "test": table}).save_to_disk(tmp_path / "set")
    found = HuggingFace.read(tmp_path / "set", READER)
    assert found.classes == ("bad", "good")
    assert found.train["mask"].sum() == 12
    assert found.valid["x"].tolist() == [[1] * 7] * 2


def test_texts_become_characters_and_pictures_pixels(tmp_path):
    letters = 'Embedding(input_dim=96, output_dim=4) | GlobalAveragePooling1D() | Output(2, activation="softmax")'
    found = HuggingFace.read(saved(tmp_path, text=["abc", "de"], label=[0, 1]), made("(3,)", letters))
    assert found.train["mask"].tolist() == [[True] * 3, [True, True, False]]
    table = datasets.Dataset.from_dict({"image": [Image.new("L", (5, 4), 255)], "label": [1]})
    table.save_to_disk(tmp_path / "pictures")
    found = HuggingFace.read(tmp_path / "pictures", made("(2, 3, 1)", 'Flatten() | Output(2, activation="softmax")'))
    assert (found.train["x"] * found.scale).tolist() == [[[[1.0]] * 3] * 2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1], "b": [2]}, "set: no column holds the answers; it has a, b, known are label"),
        ({"a": [1], "b": [2], "label": [0]}, "set: no column holds the inputs; it has a, b, known are x"),
        ({"x": [[1, 2], [3]], "label": [0, 1]}, "set: the rows of `x` differ in length; pad them"),
        ({"x": [], "label": []}, "set: there are no examples"),
    ],
)
def test_what_cannot_be_used_is_named(columns, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        HuggingFace.read(saved(tmp_path, **columns), DENSE)
    assert str(caught.value).startswith(message)


def test_a_torn_data_set_is_refused(tmp_path):
    where = saved(tmp_path, x=[[1.0]], label=[0])
    (where / "state.json").write_text("{}")
    with pytest.raises(TaskError, match="set cannot be read"):
        HuggingFace.read(where, DENSE)


def test_a_missing_package_is_answered_with_the_command_that_installs_it(tmp_path, monkeypatch):
    where = saved(tmp_path, x=[[1.0]], label=[0])
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(TaskError, match=r'needs a package that is not installed: pip install "neural\[hf\]"'):
        HuggingFace.read(where, DENSE)

"""Datasets saved by Hugging Face's `datasets`."""

import sys

import datasets
import numpy as np
import pytest
from PIL import Image

from neural.core.errors import TaskError
from neural.data.sources.hugging_face import HuggingFace
from tests.tasks.networks import DENSE, READER, build_network


@pytest.fixture(autouse=True)
def no_bars():
    datasets.disable_progress_bars()


def save_dataset(folder, **columns):
    datasets.Dataset.from_dict(columns).save_to_disk(folder / "set")
    return folder / "set"


def test_numbers_with_labels(tmp_path):
    folder_path = save_dataset(tmp_path, features=np.ones((4, 7)).tolist(), label=[0, 1, 2, 0])
    assert HuggingFace.matches(folder_path)
    examples = HuggingFace.read(folder_path, DENSE)
    assert examples.data_name == "set"
    assert examples.train["x"].shape == (4, 7)
    assert examples.train["y"].tolist() == [0, 1, 2, 0]


def test_masks_and_class_names_are_read(tmp_path):
    table = datasets.Dataset.from_dict(
        {
            "text": ["a", "b"],
            "input_ids": [[1] * 7] * 2,
            "attention_mask": [[1] * 6 + [0]] * 2,
            "label": [1, 0],
        }
    ).cast_column("label", datasets.ClassLabel(names=["bad", "good"]))
    datasets.DatasetDict({"train": table, "test": table}).save_to_disk(tmp_path / "set")
    examples = HuggingFace.read(tmp_path / "set", READER)
    assert examples.classes == ("bad", "good")
    assert examples.train["mask"].sum() == 12
    assert examples.valid["x"].tolist() == [[1] * 7] * 2


def test_texts_become_characters_and_images_pixels(tmp_path):
    letters = (
        "Embedding(input_dim=96, output_dim=4) | GlobalAveragePooling1D() | "
        'Output(2, activation="softmax")'
    )
    examples = HuggingFace.read(
        save_dataset(tmp_path, text=["abc", "de"], label=[0, 1]), build_network("(3,)", letters)
    )
    assert examples.train["mask"].tolist() == [[True] * 3, [True, True, False]]
    table = datasets.Dataset.from_dict({"image": [Image.new("L", (5, 4), 255)], "label": [1]})
    table.save_to_disk(tmp_path / "pictures")
    examples = HuggingFace.read(
        tmp_path / "pictures",
        build_network("(2, 3, 1)", 'Flatten() | Output(2, activation="softmax")'),
    )
    assert (examples.train["x"] * examples.scale).tolist() == [[[[1.0]] * 3] * 2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1], "b": [2]}, "set: no column holds the labels; it has a, b, known are label"),
        (
            {"a": [1], "b": [2], "label": [0]},
            "set: no column holds the inputs; it has a, b, known are x",
        ),
        ({"x": [[1, 2], [3]], "label": [0, 1]}, "set: the rows of `x` differ in length; pad them"),
        ({"x": [], "label": []}, "set: there are no examples"),
    ],
)
def test_unusable_columns_are_named(columns, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        HuggingFace.read(save_dataset(tmp_path, **columns), DENSE)
    assert str(caught.value).startswith(message)


def test_a_damaged_dataset_is_refused(tmp_path):
    folder_path = save_dataset(tmp_path, x=[[1.0]], label=[0])
    (folder_path / "state.json").write_text("{}")
    with pytest.raises(TaskError, match="set cannot be read"):
        HuggingFace.read(folder_path, DENSE)


def test_a_missing_package_is_reported_with_its_install_command(tmp_path, monkeypatch):
    folder_path = save_dataset(tmp_path, x=[[1.0]], label=[0])
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        TaskError,
        match=r'needs a package that is not installed: run `pip install "neural-lab\[hf\]"`',
    ):
        HuggingFace.read(folder_path, DENSE)

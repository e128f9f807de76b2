"""Images in class folders."""

import numpy as np
import pytest
from PIL import Image

from neural.core.errors import TaskError
from neural.data.dataset import Dataset
from neural.data.sources.images import Images
from tests.tasks.networks import DENSE, build_network

HEAD = 'Flatten() | Output(2, activation="softmax")'
COLOURS = build_network("(4, 6, 3)", HEAD)


def save_image(path, size=(6, 4), colour=(255, 0, 51), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_a_folder_is_a_class_and_images_are_resized_to_the_input(tmp_path):
    save_image(tmp_path / "dog" / "b.png", (13, 9))
    save_image(tmp_path / "cat" / "a.jpg")
    (tmp_path / "cat" / "notes.md").touch()
    assert Images.matches(tmp_path)
    examples = Images.read(tmp_path, COLOURS)
    assert examples.classes == ("cat", "dog")
    assert examples.train["x"].shape == (2, 4, 6, 3)
    assert examples.train["y"].tolist() == [0, 1]


def test_pixels_are_scaled_to_0_to_1_per_batch(tmp_path):
    save_image(tmp_path / "cat" / "a.png")
    save_image(tmp_path / "dog" / "b.png")
    data = Dataset(
        Images.read(tmp_path, COLOURS), COLOURS, validation_split=0.0, batch_size=2, seed=0
    )
    np.testing.assert_allclose(data.batch(0)["x"][0, 0, 0].numpy(), [1.0, 0.0, 0.2])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("(4, 6, 1)", (4, 6, 1)), ("(4, 6)", (4, 6)), ("(None, None, 4)", (4, 6, 4))],
)
def test_colours_follow_the_input(shape, expected, tmp_path):
    save_image(tmp_path / "cat" / "a.png")
    assert Images.read(tmp_path, build_network(shape, "Dense(2)", 'loss: "mse"')).train[
        "x"
    ].shape == (
        1,
        *expected,
    )


def test_the_validation_split_of_the_data_is_used(tmp_path):
    for split in ("train", "val"):
        save_image(tmp_path / split / "cat" / "a.png")
        save_image(tmp_path / split / "dog" / "b.png")
    examples = Images.read(tmp_path, COLOURS)
    assert examples.classes == ("cat", "dog")
    assert len(examples.train["y"]) == len(examples.valid["y"]) == 2
    save_image(tmp_path / "val" / "cow" / "c.png")
    with pytest.raises(TaskError, match="`val` has classes that `train` does not have: cow"):
        Images.read(tmp_path, COLOURS)


def test_a_file_that_is_not_an_image_is_named(tmp_path):
    save_image(tmp_path / "cat" / "a.png")
    (tmp_path / "cat" / "b.png").write_bytes(b"torn")
    with pytest.raises(TaskError, match=r"cat/b.png cannot be read as an image"):
        Images.read(tmp_path, COLOURS)


def test_a_network_that_takes_no_images_is_refused(tmp_path):
    save_image(tmp_path / "cat" / "a.png")
    with pytest.raises(
        TaskError,
        match=r"images need `input: \(height, width, channels\)`.*but Small takes \(7,\)",
    ):
        Images.read(tmp_path, DENSE)


def test_open_sizes_need_images_of_one_size(tmp_path):
    save_image(tmp_path / "cat" / "a.png")
    save_image(tmp_path / "cat" / "b.png", (5, 4))
    with pytest.raises(
        TaskError, match=r"b.png is 5 × 4, the first image 6 × 4; set the size in `input:`"
    ):
        Images.read(tmp_path, build_network("(None, None, 3)", "Dense(2)", 'loss: "mse"'))

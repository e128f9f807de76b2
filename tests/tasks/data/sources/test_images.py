"""Pictures in folders."""

import numpy as np
import pytest
from PIL import Image

from neural.tasks.data.dataset import Dataset
from neural.tasks.data.sources.images import Images
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, made

HEAD = 'Flatten() | Output(2, activation="softmax")'
COLOURS = made("(4, 6, 3)", HEAD)


def picture(path, size=(6, 4), colour=(255, 0, 51), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_a_folder_is_a_class_and_pictures_take_the_size_of_the_input(tmp_path):
    picture(tmp_path / "dog" / "b.png", (13, 9))
    picture(tmp_path / "cat" / "a.jpg")
    (tmp_path / "cat" / "notes.md").touch()
    assert Images.fits(tmp_path)
    found = Images.read(tmp_path, COLOURS)
    assert found.classes == ("cat", "dog")
    assert found.train["x"].shape == (2, 4, 6, 3)
    assert found.train["y"].tolist() == [0, 1]


def test_pixels_are_floats_from_0_to_1_when_they_are_used(tmp_path):
    picture(tmp_path / "cat" / "a.png")
    picture(tmp_path / "dog" / "b.png")
    data = Dataset(Images.read(tmp_path, COLOURS), COLOURS, share=0.0, batch_size=2, seed=0)
    np.testing.assert_allclose(data.batch(0)["x"][0, 0, 0].numpy(), [1.0, 0.0, 0.2])


@pytest.mark.parametrize(
    ("shape", "wanted"), [("(4, 6, 1)", (4, 6, 1)), ("(4, 6)", (4, 6)), ("(None, None, 4)", (4, 6, 4))]
)
def test_colours_follow_the_input(shape, wanted, tmp_path):
    picture(tmp_path / "cat" / "a.png")
    assert Images.read(tmp_path, made(shape, "Dense(2)", 'loss: "mse"')).train["x"].shape == (1, *wanted)


def test_a_split_of_its_own_is_kept(tmp_path):
    for part in ("train", "val"):
        picture(tmp_path / part / "cat" / "a.png")
        picture(tmp_path / part / "dog" / "b.png")
    found = Images.read(tmp_path, COLOURS)
    assert found.classes == ("cat", "dog")
    assert len(found.train["y"]) == len(found.valid["y"]) == 2
    picture(tmp_path / "val" / "cow" / "c.png")
    with pytest.raises(TaskError, match="`val` has a class that `train` has not: cow"):
        Images.read(tmp_path, COLOURS)


def test_a_file_that_is_no_picture_is_named(tmp_path):
    picture(tmp_path / "cat" / "a.png")
    (tmp_path / "cat" / "b.png").write_bytes(b"torn")
    with pytest.raises(TaskError, match=r"cat/b.png is no picture that can be read"):
        Images.read(tmp_path, COLOURS)


def test_a_network_that_takes_no_pictures_is_refused(tmp_path):
    picture(tmp_path / "cat" / "a.png")
    with pytest.raises(TaskError, match=r"pictures need `input: \(height, width, channels\)`.*but Small takes \(7,\)"):
        Images.read(tmp_path, DENSE)


def test_open_sizes_need_pictures_of_one_size(tmp_path):
    picture(tmp_path / "cat" / "a.png")
    picture(tmp_path / "cat" / "b.png", (5, 4))
    with pytest.raises(TaskError, match=r"b.png is 5 × 4, the first picture 6 × 4; write the size in `input:`"):
        Images.read(tmp_path, made("(None, None, 3)", "Dense(2)", 'loss: "mse"'))

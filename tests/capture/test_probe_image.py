"""The picture of a probe, and the attention over it."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import neural
from neural.capture.probe_image import ProbeImage, compute_image_attention, encode_picture
from tests.vision_folders import GRID, SIZE, build_vision_model, plant_patch_head


def read_picture(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def capture_pixels(model, count=1):
    torch.manual_seed(3)
    return neural.watch(model, {"pixel_values": torch.randn(count, 3, SIZE, SIZE)})


def test_the_picture_undoes_the_normalisation():
    colours = torch.rand(3, 16, 16)
    normalised = (colours - 0.4) / 0.3
    picture = read_picture(encode_picture(normalised, 16, 16, mean=(0.4,) * 3, std=(0.3,) * 3))
    np.testing.assert_allclose(picture, colours.permute(1, 2, 0).numpy() * 255, atol=0.51)


def test_pixels_beyond_the_patches_are_not_in_the_picture():
    assert read_picture(encode_picture(torch.rand(3, 35, 50), 32, 48)).shape == (32, 48, 3)
    assert read_picture(encode_picture(torch.rand(1, 32, 32), 32, 32)).shape == (32, 32, 3)


def test_large_pictures_become_small():
    assert read_picture(encode_picture(torch.rand(3, 500, 1000), 500, 1000)).shape == (168, 336, 3)


@pytest.mark.parametrize("patch", [(0, 0), (2, 3), (3, 0)])
def test_a_planted_head_is_at_its_patch(patch):
    capture = capture_pixels(plant_patch_head(build_vision_model(), patch))
    (image,) = capture.images
    rows, rollout = compute_image_attention(capture, image)
    grid = image.to_grid(rows[1, 0])
    assert np.unravel_index(grid.argmax(), grid.shape) == patch
    assert grid.max() > 0.9
    other = image.to_grid(rows[1, 1])
    assert other.max() < 0.2, "the other head has random weights"
    rolled = image.to_grid(rollout[-1])
    assert np.unravel_index(rolled.argmax(), rolled.shape) == patch


def test_rows_and_rollout_are_those_of_cls():
    capture = capture_pixels(build_vision_model("DeiT"), count=2)
    rows, rollout = compute_image_attention(capture, capture.images[1], example=1)
    maps = [call.maps()[1] for call in capture]
    for layer in range(2):
        np.testing.assert_allclose(rows[layer], maps[layer][:, 0], atol=1e-7)
    first, second = ((m.mean(0) + np.eye(18)) / 2 for m in maps)
    np.testing.assert_allclose(rollout, [first[0], (second @ first)[0]], atol=1e-6)


def test_without_cls_the_mean_of_all_patches_is_shown():
    capture = capture_pixels(build_vision_model("SiglipVision"))
    (image,) = capture.images
    assert image.query_name == "mean of all patches"
    rows, _ = compute_image_attention(capture, image)
    np.testing.assert_allclose(rows[0], capture[0].maps()[0].mean(1), atol=1e-7)
    assert np.isnan(rows[2:]).all(), "the pooling head has one query, not the patches"


def test_a_missing_layer_leaves_no_rollout():
    capture = capture_pixels(build_vision_model())
    (image,) = capture.images
    del capture.calls[0]
    rows, rollout = compute_image_attention(capture, image)
    assert np.isfinite(rows).all() and np.isnan(rollout).all()


def test_labels_are_rows_and_columns():
    (image,) = capture_pixels(build_vision_model()).images
    labels = image.label_tokens()
    assert len(labels) == image.tokens == 1 + GRID**2
    assert labels[:6] == ["CLS", "0,0", "0,1", "0,2", "0,3", "1,0"] and labels[-1] == "3,3"


def test_metadata_is_read_back_and_damage_is_refused():
    (image,) = capture_pixels(build_vision_model()).images
    data = image.to_metadata()
    restored = ProbeImage.from_metadata(data)
    assert restored is not None and restored.to_metadata() == data
    for damage in (
        {"grid": [4]},
        {"grid": [40, 40]},
        {"grid": ["4", 4]},
        {"png": "<script>"},
        {"png": "aGVsbG8="},
        {"first_patch": -1},
        {"prefix_names": [1]},
        {"layers": [3]},
        {"tokens": None},
    ):
        assert ProbeImage.from_metadata({**data, **damage}) is None, damage
    for other in (None, [], "image", {}):
        assert ProbeImage.from_metadata(other) is None

"""Attention over an image as data of figures and pages."""

import base64

import numpy as np
import pytest
import torch

import neural
from neural.capture.probe_image import IMAGE_KEY, ROWS_ARRAY
from neural.capture.snapshot_writer import SnapshotWriter
from neural.report.capture_page import build_capture_page_data
from neural.report.image_attention import (
    encode_image,
    load_image_page_data,
    load_run_image,
)
from neural.runs.run import Run
from tests.report_runs import write_run
from tests.vision_folders import SIZE, build_vision_model, plant_patch_head


@pytest.fixture(scope="module")
def capture():
    torch.manual_seed(0)
    model = plant_patch_head(build_vision_model(), (2, 3))
    return neural.watch(model, {"pixel_values": torch.randn(1, 3, SIZE, SIZE)})


@pytest.fixture
def run(capture, tmp_path):
    created = Run.create(tmp_path, "vit", settings={"task": "watched"}, program=None)
    writer = SnapshotWriter(created)
    for step in (0, 10):
        writer.write(step, capture, lambda: capture.labels, with_maps=True)
    created.finish("finished")
    with Run.open(created.path) as opened:
        yield opened


def decode(data, key, shape):
    values = np.frombuffer(base64.b64decode(data[key]), "<u2").reshape(shape)
    return np.square(values / 65535)


def test_pages_have_the_rows_of_cls(run, capture):
    data = load_image_page_data(run)
    assert (data["grid"], data["first_patch"], data["query"]) == ([4, 4], 1, "CLS")
    assert (data["steps"], data["heads"]) == ([0, 10], 2)
    assert data["has_rollout"] == [True, True]
    rows = decode(data, "rows", (2, 2, 2, 17))
    expected = capture[1].maps()[0][:, 0]
    np.testing.assert_allclose(rows[1, 1], expected, atol=2e-5)
    assert decode(data, "rollout", (2, 2, 17)).sum(-1) == pytest.approx(np.ones((2, 2)), abs=1e-3)


def test_updates_have_new_steps_only(run):
    assert load_image_page_data(run, after=0)["steps"] == [10]
    assert load_image_page_data(run, after=10)["steps"] == []


def test_a_page_of_a_capture_has_its_image(capture):
    (data,) = build_capture_page_data(capture)["runs"]
    assert data["image"]["steps"] == [0]
    assert decode(data["image"], "rows", (1, 2, 2, 17))[0, 1, 0].argmax() == 1 + 2 * 4 + 3


def test_rows_of_chosen_layers(run):
    shown = load_run_image(run, 10, [1])
    assert shown.rows.shape == (1, 2, 17)
    assert shown.rows[0, 0].argmax() == 1 + 2 * 4 + 3
    assert load_run_image(run, 5, [1]) is None


def test_many_steps_are_thinned_and_keep_the_last(capture):
    image = capture.images[0]
    rows = np.zeros((3000, 12, 12, image.tokens), np.float32)
    rollouts = np.zeros((3000, 12, image.tokens), np.float32)
    data = encode_image(image, range(3000), rows, rollouts)
    assert len(data["rows"]) + len(data["rollout"]) <= 1_500_000 * 4 / 3 + 8
    assert data["steps"][0] == 0 and data["steps"][-1] == 2999


def test_runs_without_images_and_damaged_runs_have_none(tmp_path):
    with Run.open(write_run(tmp_path, layers=1, heads=1)) as plain:
        assert load_image_page_data(plain) is None


def test_rows_of_another_shape_are_left_out(capture, tmp_path):
    created = Run.create(tmp_path, "vit", settings={"task": "watched"}, program=None)
    created.set_metadata(IMAGE_KEY, capture.images[0].to_metadata())
    created.log_arrays(0, {ROWS_ARRAY: np.zeros((2, 2, 5))})
    created.finish("finished")
    with Run.open(created.path) as opened:
        assert load_image_page_data(opened)["steps"] == []

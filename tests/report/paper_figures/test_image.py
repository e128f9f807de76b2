"""An image with the weights of a head over it."""

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

import neural
from neural.report.attention_snapshot import FigureError
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import write_run
from tests.vision_folders import SIZE, build_vision_model, plant_patch_head


@pytest.fixture(scope="module")
def capture():
    torch.manual_seed(0)
    model = plant_patch_head(build_vision_model(), (2, 1))
    return neural.watch(model, {"pixel_values": torch.randn(1, 3, SIZE, SIZE)})


def measure_colour(path):
    """How coloured each patch of the three pictures is; grey has 0, [panel, row, column]."""
    pixels = np.asarray(PillowImage.open(path).convert("RGB"), float)
    saturation = pixels.max(-1) - pixels.min(-1)
    height, width = saturation.shape
    scale = width / 234  # points of 3.25 in
    panel = (234 - 4 - 12) / 3 * scale
    grids = []
    for index in range(3):
        left, top = 2 * scale + index * (panel + 6 * scale), 21 * scale
        cell = panel / 4
        grids.append(
            [
                [
                    saturation[
                        int(top + (row + 0.3) * cell) : int(top + (row + 0.7) * cell),
                        int(left + (column + 0.3) * cell) : int(left + (column + 0.7) * cell),
                    ].mean()
                    for column in range(4)
                ]
                for row in range(4)
            ]
        )
    assert top + panel <= height
    return np.array(grids)


def test_the_planted_patch_has_the_strongest_colour(capture, tmp_path):
    figure = neural.figure(capture, "image", layer=1, head=0)
    check_figure(figure, tmp_path)
    picture, head, rollout = measure_colour(figure.save(tmp_path / "image.png"))
    assert picture.max() < 1, "the input is grey"
    for grid in (head, rollout):
        assert np.unravel_index(grid.argmax(), grid.shape) == (2, 1)
    assert head[2, 1] > 50 > 5 > np.delete(head, 2 * 4 + 1).max()


def test_captions_say_what_is_drawn(capture, tmp_path):
    texts = read_texts(neural.figure(capture, "image", layer=1, head=0).save(tmp_path / "i.svg"))
    assert {"input", "L1 h0: CLS", "rollout: CLS"} <= set(texts)
    share = 100 * float(capture[1].maps()[0][0, 0, 0])
    assert any(text.endswith(f"CLS {share:.0f} %") for text in texts)


def test_a_patch_can_be_the_query(capture, tmp_path):
    figure = neural.figure(capture, "image", layer=0, head=1, patch=(3, 2))
    texts = read_texts(figure.save(tmp_path / "patch.svg"))
    assert "L0 h1: patch 3,2" in texts
    assert not any("rollout" in text for text in texts), "rollout is that of CLS"


def test_what_cannot_be_drawn_is_a_message(capture, tmp_path):
    with pytest.raises(FigureError, match="no patch 0,4: rows are 0 … 3, columns 0 … 3"):
        neural.figure(capture, "image", patch=(0, 4))
    with pytest.raises(FigureError, match="`head` has no patch"):
        neural.figure(capture, "head", patch=(0, 0))
    with pytest.raises(FigureError, match="has no image: `neural watch FOLDER --image FILE"):
        neural.figure(write_run(tmp_path, layers=1, heads=1), "image")

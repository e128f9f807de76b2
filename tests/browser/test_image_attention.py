"""Attention over an image in a real Chromium without a network."""

import pytest
import torch
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.interpret.images import prepare_images
from neural.interpret.subject import load_subject
from tests.vision_folders import (
    build_swin,
    build_vision_model,
    draw_image,
    plant_patch_head,
    save_vision_folder,
)

PATCH = 2 * 4 + 3
"""Index of the planted patch, 2,3."""


def watch(*words):
    result = CliRunner().invoke(main, ["watch", *map(str, words)])
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return draw_image(tmp_path_factory.mktemp("images") / "cat.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ViT whose head L1 h0 attends to the patch 2,3; rows of layer 0 differ from each other."""
    model = plant_patch_head(build_vision_model(), (2, 3))
    with torch.no_grad():
        model.layers[0].attention.q_proj.weight.mul_(300)
    return save_vision_folder(tmp_path_factory.mktemp("vit") / "vit", model)


@pytest.fixture(scope="module")
def page(folder, image):
    path = folder.parent / "vit.html"
    watch(folder, "--image", image, "-o", path)
    return path.as_uri()


@pytest.fixture(scope="module")
def series(tmp_path_factory, image):
    """The page of two checkpoints: the head finds its patch at step 20."""
    folder = tmp_path_factory.mktemp("series")
    checkpoints = [
        save_vision_folder(
            folder / f"checkpoint-{step}",
            plant_patch_head(build_vision_model(), (2, 3), sharpness=sharpness),
        )
        for step, sharpness in ((10, 0.0), (20, 8.0))
    ]
    watch(*checkpoints, "--image", image, "-o", folder / "series.html")
    return (folder / "series.html").as_uri()


def read_weights(tab, panel=0):
    """Weights of all patches of a picture."""
    rects = tab.locator(".image-panel").nth(panel).locator("rect.image-patch")
    rects.first.wait_for(state="attached")
    return rects.evaluate_all("all => all.map(rect => Number(rect.dataset.weight))")


def read_opacities(tab, panel=0):
    rects = tab.locator(".image-panel").nth(panel).locator("rect.image-patch")
    return rects.evaluate_all("all => all.map(rect => Number(rect.getAttribute('fill-opacity')))")


def open_head(tab, address, layer=1, head=0, more=""):
    tab.goto("about:blank")  # another hash alone would not load the page again
    tab.goto(f"{address}#/attention?layer={layer}&head={head}{more}")
    tab.locator(".image-panel").first.wait_for()


def test_the_overlay_is_strongest_at_the_planted_patch(tab, page):
    open_head(tab, page)
    weights = read_weights(tab)
    assert len(weights) == 16
    assert max(range(16), key=weights.__getitem__) == PATCH and weights[PATCH] > 0.9
    opacities = read_opacities(tab)
    assert opacities[PATCH] == pytest.approx(0.85)
    assert sorted(opacities)[-2] < 0.1
    assert tab.locator(".image-title").first.inner_text() == "L1 h0: CLS"


def test_rollout_is_beside_the_head(tab, page):
    open_head(tab, page)
    assert tab.locator(".image-title").nth(1).inner_text() == "rollout to L1: CLS"
    rollout = read_weights(tab, panel=1)
    assert max(range(16), key=rollout.__getitem__) == PATCH
    assert rollout[PATCH] < read_weights(tab)[PATCH], "half of every layer is the residual"


def test_the_other_head_is_not_drawn_at_that_patch(tab, page):
    open_head(tab, page, head=1)
    weights = read_weights(tab)
    assert max(weights) < 0.2


def test_a_click_on_a_patch_shows_its_row(tab, page, folder, image):
    subject = load_subject(str(folder))
    capture = neural.watch(subject.model, prepare_images(subject, [image]).batch)
    rows = capture[0].maps()[0, 1, :, 1:]
    open_head(tab, page, layer=0, head=1)
    of_cls = read_weights(tab)
    assert of_cls == pytest.approx(rows[0], abs=0.005)
    assert abs(rows[0] - rows[6]).max() > 0.05
    tab.locator(".image-panel").first.locator("rect.image-patch").nth(5).click()
    tab.locator("rect.image-query").wait_for(state="attached")
    assert tab.locator(".image-title").first.inner_text() == "L0 h1: patch 1,1"
    tab.wait_for_url("**query=6**")  # written after a moment
    assert read_weights(tab) == pytest.approx(rows[6], abs=0.005)
    tab.keyboard.press("Escape")
    tab.locator("rect.image-query").wait_for(state="detached")
    assert read_weights(tab) == of_cls


def test_arrow_keys_move_the_patch(tab, page):
    open_head(tab, page, more="&query=6")
    tab.locator(".image-panel svg").first.focus()
    tab.keyboard.press("ArrowDown")
    tab.get_by_text("L1 h0: patch 2,1").wait_for()
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    tab.get_by_text("L1 h0: patch 2,0").wait_for()


def test_the_picture_is_drawn_under_the_weights(tab, page):
    open_head(tab, page)
    canvas = tab.locator(".image-frame canvas").first
    tab.locator('.image-frame canvas[width="32"]').first.wait_for()
    left, right = canvas.evaluate(
        """canvas => {
             const { data } = canvas.getContext('2d').getImageData(0, 29, 32, 1)
             return [2, 29].map(x => Array.from(data.slice(4 * x, 4 * x + 4)))
           }"""
    )
    assert left[:3] == [left[0]] * 3, "grey"
    assert left != right


def test_the_slider_changes_the_overlay(tab, series):
    open_head(tab, series, more="&step=20")
    assert read_weights(tab)[PATCH] > 0.9
    open_head(tab, series, more="&step=10")
    assert max(read_weights(tab)) < 0.2


def test_windows_have_a_note_and_no_picture(tab, image, tmp_path):
    folder = save_vision_folder(tmp_path / "swin", build_swin())
    watch(folder, "--image", image, "-o", tmp_path / "swin.html")
    tab.goto((tmp_path / "swin.html").as_uri())
    tab.get_by_text("windows of 4 × 4 patches").first.wait_for()
    assert tab.locator(".image-panel").count() == 0

"""Positions of patches are found by experiment, or there is no picture."""

import pytest
import torch
import transformers
from torch import nn

import neural
from neural.capture.patch_positions import PatchError, find_patch_layout
from tests.vision_folders import SHAPE, SIZE, build_swin, build_vision_model


def locate(model, height=SIZE, width=SIZE, **inputs):
    torch.manual_seed(1)
    return find_patch_layout(model, {"pixel_values": torch.randn(2, 3, height, width), **inputs})


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("ViT", ("CLS",)),
        ("DeiT", ("CLS", "DIST")),
        ("CLIPVision", ("CLS",)),
        ("SiglipVision", ()),
        ("Beit", ("CLS",)),
        ("Dinov2", ("CLS",)),
        ("Dinov2WithRegisters", ("CLS", "REG 1", "REG 2", "REG 3", "REG 4")),
    ],
)
def test_positions_before_the_patches_are_counted_and_named(kind, names):
    layout = locate(build_vision_model(kind))
    assert (layout.rows, layout.columns) == (4, 4)
    assert layout.prefix_names == names and layout.first_patch == len(names)
    assert layout.tokens == 16 + len(names)
    assert len(layout.layers) == 2 and layout.is_complete


def test_images_need_not_be_square():
    layout = locate(build_vision_model(image_size=[24, 48]), 24, 48)
    assert (layout.rows, layout.columns) == (3, 6)
    layout = locate(build_vision_model(), 48, 16, interpolate_pos_encoding=True)
    assert (layout.rows, layout.columns) == (6, 2)


def test_positions_after_the_patches_are_not_mistaken_for_others():
    """YOLOS puts its detection tokens at the end: CLS is the only one before the patches."""
    config = transformers.YolosConfig(**SHAPE, image_size=[SIZE, SIZE], num_detection_tokens=5)
    torch.manual_seed(0)
    layout = locate(transformers.YolosModel(config).eval())
    assert (layout.first_patch, layout.tokens) == (1, 22)


def test_a_text_of_as_many_tokens_is_no_image():
    text = {**SHAPE, "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    del text["patch_size"]
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**SHAPE, "image_size": SIZE}, projection_dim=8
    )
    model = transformers.CLIPModel(config).eval()
    ids = torch.randint(3, 50, (2, 17))
    layout = locate(model, input_ids=ids)
    assert layout.tokens == 17
    assert len(layout.layers) == 2
    assert all(name.startswith("vision_model.") for name in layout.layers)


def test_windows_are_refused():
    with pytest.raises(PatchError, match="windows of 4 × 4 patches"):
        locate(build_swin())


def test_shuffled_and_dropped_patches_are_refused():
    for mask_ratio in (0.0, 0.5):
        config = transformers.ViTMAEConfig(**SHAPE, image_size=SIZE, mask_ratio=mask_ratio)
        with pytest.raises(PatchError, match="not the 4 × 4 patches"):
            locate(transformers.ViTMAEModel(config).eval())


class OrderedPatches(nn.Module):
    """Patches in an order of choice, then one layer of attention."""

    def __init__(self, order, kernel=8, stride=8):
        super().__init__()
        self.order = order
        self.embedding = nn.Conv2d(3, 8, kernel, stride)
        self.layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

    def forward(self, pixel_values):
        grid = self.embedding(pixel_values)
        return self.layer(self.order(grid))


def in_reading_order(grid):
    return grid.flatten(2).transpose(1, 2)


def by_column(grid):
    return grid.transpose(2, 3).flatten(2).transpose(1, 2)


def in_blocks(grid):
    batch, width, rows, columns = grid.shape
    blocks = grid.reshape(batch, width, rows // 2, 2, columns // 2, 2).transpose(3, 4)
    return blocks.flatten(2).transpose(1, 2)


def backwards(grid):
    return in_reading_order(grid).flip(1)


def test_models_without_a_configuration_are_understood_by_their_patch_embedding():
    torch.manual_seed(0)
    layout = locate(OrderedPatches(in_reading_order).eval())
    assert (layout.rows, layout.columns, layout.first_patch, layout.tokens) == (4, 4, 0, 16)


@pytest.mark.parametrize(
    ("order", "size"),
    [(by_column, 16), (by_column, 32), (in_blocks, 32), (backwards, 16), (backwards, 32)],
)
def test_another_order_is_refused(order, size):
    torch.manual_seed(0)
    with pytest.raises(PatchError, match="in reading order"):
        locate(OrderedPatches(order).eval(), size, size)


def test_overlapping_patches_are_refused():
    with pytest.raises(PatchError, match="size of its patches is unknown"):
        locate(OrderedPatches(in_reading_order, kernel=8, stride=4).eval())


def test_the_model_and_the_random_state_stay_as_they_are():
    model = build_vision_model().train()
    pixels = torch.randn(2, 3, SIZE, SIZE)
    state, copy = torch.random.get_rng_state(), pixels.clone()
    find_patch_layout(model, {"pixel_values": pixels})
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(pixels, copy)
    assert all(module.training for module in model.modules())


def test_watch_labels_patches_and_explains_what_is_missing():
    pixels = torch.randn(2, 3, SIZE, SIZE)
    capture = neural.watch(build_vision_model("DeiT"), {"pixel_values": pixels})
    assert capture.labels[1][:4] == ["CLS", "DIST", "0,0", "0,1"]
    assert len(capture.images) == 2 and not capture.image_note
    windowed = neural.watch(build_swin(), {"pixel_values": pixels})
    assert windowed and not windowed.images
    assert "windows of 4 × 4" in windowed.image_note

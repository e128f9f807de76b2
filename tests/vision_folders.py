"""Small vision transformers with random or hand-set weights, as folders of Hugging Face."""

import numpy as np
import torch
import transformers
from PIL import Image

from neural.capture.probe_image import (
    IMAGE_KEY,
    ROLLOUT_ARRAY,
    ROWS_ARRAY,
    ProbeImage,
    encode_picture,
)
from neural.runs.run import Run

SIZE, PATCH = 32, 8
GRID = SIZE // PATCH
"""Patches per row and column."""
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "patch_size": PATCH,
}


def build_vision_model(kind="ViT", *, image_size=SIZE):
    """A model with random weights; `kind` is the name in transformers: ViT, DeiT, CLIPVision."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**SHAPE, image_size=image_size)
    return getattr(transformers, f"{kind}Model")(config).eval()


def build_swin():
    """A Swin transformer with windows of 4 × 4 patches."""
    torch.manual_seed(0)
    return transformers.SwinModel(
        transformers.SwinConfig(
            image_size=SIZE,
            patch_size=4,
            embed_dim=8,
            depths=[2, 1],
            num_heads=[2, 2],
            window_size=4,
        )
    ).eval()


def plant_patch_head(model, patch, layer=1, head=0, sharpness=8.0):
    """Set the weights of a ViT so that, in one head, every query attends to the patch (row, column).

    The position of that patch has a mark in one coordinate that nothing else writes; the key of the
    head reads the mark, and its query is constant.
    """
    config = model.config
    width = config.hidden_size // config.num_attention_heads
    row, column = patch
    position = 1 + row * GRID + column
    mark = config.hidden_size - 1
    with torch.no_grad():
        model.embeddings.position_embeddings[..., mark] = -1.0
        model.embeddings.position_embeddings[0, position, mark] = 20.0
        model.embeddings.cls_token[..., mark] = 0
        projection = model.embeddings.patch_embeddings.projection
        projection.weight[mark] = 0
        projection.bias[mark] = 0
        for block in model.layers:
            # nothing is written to the residual stream: layers see the embeddings
            for name, param in block.named_parameters():
                if name in ("attention.o_proj.weight", "mlp.fc2.weight") or name.endswith(
                    ("o_proj.bias", "fc2.bias")
                ):
                    param.zero_()
        attention = model.layers[layer].attention
        rows = slice(head * width, (head + 1) * width)
        for projection in (attention.q_proj, attention.k_proj):
            projection.weight[rows] = 0
            projection.bias[rows] = 0
        attention.q_proj.bias[head * width] = sharpness
        attention.k_proj.weight[head * width, mark] = 1.0
    return model


def save_vision_folder(path, model, *, processor=True, size=SIZE):
    """Write a folder as `save_pretrained` does, with an image processor."""
    model.save_pretrained(path)
    if processor:
        height, width = (size, size) if isinstance(size, int) else size
        transformers.ViTImageProcessorPil(
            size={"height": height, "width": width}, image_mean=[0.4] * 3, image_std=[0.3] * 3
        ).save_pretrained(path)
    return path


def draw_image(path, *, size=(SIZE, SIZE)):
    """Write a picture with a different colour everywhere; `size` is (width, height)."""
    width, height = size
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    Image.fromarray(np.stack([x, y, 255 - x], axis=-1).astype(np.uint8)).save(path)
    return path


def add_image(path, *, layers, heads):
    """Give a run of another model an image of 2 × 4 patches after CLS, with even weights."""
    with Run.open(path) as finished:
        steps, names = finished.map_steps(), finished.metadata("attention/layers")
    run = Run.reopen(path)
    picture = encode_picture(torch.rand(3, 16, 32), 16, 32)
    image = ProbeImage(picture, 2, 4, 1, 9, tuple(names), prefix_names=("CLS",))
    run.set_metadata(IMAGE_KEY, image.to_metadata())
    for step in steps:
        rows = np.full((layers, heads, 9), 1 / 9, np.float32)
        run.log_arrays(step, {ROWS_ARRAY: rows, ROLLOUT_ARRAY: rows[:, 0]})
    run.finish("finished")

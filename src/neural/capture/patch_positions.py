"""Find where the patches of an image are in the sequence of a vision transformer, by experiment.

Models put CLS, distillation and register tokens before the patches, detection tokens after them, or
none; some shuffle, merge or window the patches. A table of architectures would be wrong for the
next one. So the pixels of a few patches are changed, and the queries and keys of the first
attention show which positions notice: exactly one each, at the place that the grid predicts, or
there is no picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.probe_image import ProbeImage, encode_picture
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import capture_calls, run_probe
from neural.core.errors import NeuralError
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

PIXELS_INPUT = "pixel_values"
"""Name of the images among the inputs of Hugging Face models."""
CHANGE_THRESHOLD = 1e-3
"""A position changed if its change is above this share of the largest; others are rounding."""
CONFIG_PARTS = ("vision_config", "encoder")
"""Parts of a configuration that describe the vision tower of a larger model."""
PREFIX_NAMES = {"deit": ("CLS", "DIST")}
"""Names of the positions before the patches by model type; else CLS, then registers."""


class PatchError(NeuralError, ValueError):
    """The weights of this model cannot be drawn over its image; the message says why."""


@dataclass(frozen=True)
class PatchLayout:
    """Grid of patches and their positions."""

    rows: int
    columns: int
    patch_height: int
    patch_width: int
    first_patch: int
    tokens: int
    layers: tuple[str, ...]
    is_complete: bool
    prefix_names: tuple[str, ...]

    def describe_image(
        self, pixels: Tensor, mean: tuple[float, ...] = (), std: tuple[float, ...] = ()
    ) -> ProbeImage:
        """An image (C, H, W) with this layout; `mean` and `std` are those of its normalisation."""
        height, width = self.rows * self.patch_height, self.columns * self.patch_width
        return ProbeImage(
            encode_picture(pixels, height, width, mean=mean, std=std),
            self.rows,
            self.columns,
            self.first_patch,
            self.tokens,
            self.layers,
            self.is_complete,
            self.prefix_names,
            (height, width),
        )


def find_pixels(batch: Any) -> Tensor | None:
    """The images (B, C, H, W) in a batch; None if it has none."""
    if isinstance(batch, Mapping):
        batch = batch.get(PIXELS_INPUT)
    elif isinstance(batch, tuple | list) and batch:
        batch = batch[0]
    is_images = torch.is_tensor(batch) and batch.ndim == 4 and batch.is_floating_point()
    return batch if is_images else None


def describe_images(
    model: nn.Module,
    batch: Any,
    *,
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    softmax: bool | None = None,
) -> list[ProbeImage]:
    """All images of a batch with the positions of their patches; none if the batch has no images.

    PatchError if the positions cannot be found. The model runs a few more times.
    """
    pixels = find_pixels(batch)
    if pixels is None or not len(pixels):
        return []
    layout = find_patch_layout(model, batch, softmax=softmax)
    return [layout.describe_image(image, mean, std) for image in pixels]


def attach_images(
    capture: Capture,
    model: nn.Module,
    batch: Any,
    *,
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    softmax: bool | None = None,
) -> None:
    """Add the images of a batch to its capture, and labels of their patches if it has none.

    If the patches cannot be located, `capture.image_note` says why.
    """
    try:
        capture.images = describe_images(model, batch, mean=mean, std=std, softmax=softmax)
    except PatchError as error:
        # an input of four axes without this name need not be an image
        if isinstance(batch, Mapping):
            capture.image_note = f"weights are not drawn over the image: {error}"
    if capture.labels is None and capture.images:
        capture.labels = [image.label_tokens() for image in capture.images]


def find_patch_layout(model: nn.Module, batch: Any, *, softmax: bool | None = None) -> PatchLayout:
    """Change patches of the first image of a batch, and see which positions change."""
    pixels = find_pixels(batch)
    if pixels is None:
        raise PatchError(f"the batch has no images (`{PIXELS_INPUT}`, of shape (B, C, H, W))")
    windows = _find_window_size(model)
    if windows:
        raise PatchError(
            f"its layers attend within windows of {windows} × {windows} patches, so no weights "
            "cover the image; measures and maps are those of the windows"
        )
    patch_height, patch_width = _find_patch_size(model, pixels.shape[1])
    rows, columns = pixels.shape[2] // patch_height, pixels.shape[3] // patch_width
    if rows * columns < 2:
        raise PatchError(
            f"the image has {rows * columns} patches of {patch_height} × {patch_width} pixels"
        )
    changed_patches = _choose_patches(rows, columns)
    images = pixels[:1].repeat(1 + len(changed_patches), 1, 1, 1)
    for image, patches in zip(images[1:], changed_patches, strict=True):
        for row, column in patches:
            area = image[
                :,
                row * patch_height : (row + 1) * patch_height,
                column * patch_width : (column + 1) * patch_width,
            ]
            # not a constant: the embedding of a patch may ignore its mean
            area.copy_(torch.linspace(-2, 2, area.numel()).reshape(area.shape).to(area) - area)
    capture = _capture(model, _replace_images(batch, images), softmax)
    changed = [
        (name, call)
        for name, call in zip(capture.layer_names(), capture, strict=True)
        if call.attention is not None and bool(_measure_changes(call).any())
    ]
    if not changed:
        raise PatchError("no attention depends on the image")
    first_name, first = changed[0]
    assert first.attention is not None
    tokens = first.attention.queries
    if first.attention.batch != len(images) or first.attention.positions != tokens:
        raise PatchError(f"`{first_name}` does not attend from all patches to all patches")
    first_patch = _locate_patches(_measure_changes(first)[1:], changed_patches, columns)
    if first_patch is None or first_patch + rows * columns > tokens:
        raise PatchError(
            f"the positions of `{first_name}` are not the {rows} × {columns} patches of "
            f"{patch_height} × {patch_width} pixels in reading order"
        )
    layers = tuple(
        name
        for name, call in changed
        if call.attention is not None
        and call.attention.batch == len(images)
        and call.attention.queries == call.attention.positions == tokens
    )
    expected = getattr(_find_vision_config(model), "num_hidden_layers", None)
    return PatchLayout(
        rows,
        columns,
        patch_height,
        patch_width,
        first_patch,
        tokens,
        layers,
        is_complete=not capture.refusals
        and (not isinstance(expected, int) or expected == len(layers)),
        prefix_names=_name_prefix(model, first_patch),
    )


def _capture(model: nn.Module, batch: Any, softmax: bool | None) -> Capture:
    capture = Capture(())
    try:
        with preserve_model_state(model):
            block = capture_calls(model, capture, softmax=softmax, on_warning=lambda message: None)
            return run_probe(model, batch, block)
    except Exception as error:  # models raise anything; without a picture, the rest still works
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PatchError(f"the model failed on changed images: {reason}") from error


def _replace_images(batch: Any, images: Tensor) -> Any:
    """The first example of a batch, repeated, with other images."""

    def repeat(value: Any) -> Any:
        is_batched = torch.is_tensor(value) and value.ndim and len(value) == batch_size
        return value[:1].repeat(len(images), *[1] * (value.ndim - 1)) if is_batched else value

    pixels = find_pixels(batch)
    assert pixels is not None
    batch_size = len(pixels)
    if isinstance(batch, Mapping):
        return {name: repeat(value) for name, value in batch.items()} | {PIXELS_INPUT: images}
    if isinstance(batch, tuple | list):
        return (images, *map(repeat, batch[1:]))
    return images


def _measure_changes(call: CapturedCall) -> Tensor:
    """Whether queries or keys differ from those of the first example, (B, T)."""
    attention = call.attention
    assert attention is not None
    changes = (attention.q - attention.q[:1]).abs().float().amax(dim=(1, 3))
    if attention.k.shape[2] == attention.q.shape[2]:
        changes = changes + (attention.k - attention.k[:1]).abs().float().amax(dim=(1, 3))
    largest = changes.amax(dim=-1, keepdim=True)
    return (changes > CHANGE_THRESHOLD * largest) & (largest > 0)


def _choose_patches(rows: int, columns: int) -> list[set[tuple[int, int]]]:
    """Patches that are changed in each of two images.

    Read column by column, in blocks or backwards, they would be at other positions.
    """
    right, below = (0, min(1, columns - 1)), (min(1, rows - 1), 0)
    return [
        {(0, 0), right, (rows - 1, columns - 1)},
        {(0, 0), below, (0, columns - 1), (rows // 2, columns // 2)},
    ]


def _locate_patches(
    changed: Tensor, changed_patches: list[set[tuple[int, int]]], columns: int
) -> int | None:
    """Position of the first patch; None if the changed positions are not those of the patches."""
    changed_positions = [set(positions.nonzero().flatten().tolist()) for positions in changed]
    start = min(changed_positions[0], default=0)
    expected = [
        {start + row * columns + column for row, column in patches} for patches in changed_patches
    ]
    return start if changed_positions == expected else None


def _find_vision_config(model: nn.Module) -> Any:
    """The configuration of the part that reads images; None without one."""
    config = getattr(model, "config", None)
    for name in CONFIG_PARTS:
        part = getattr(config, name, None)
        if getattr(part, "patch_size", None) is not None:
            return part
    return config


def _find_patch_size(model: nn.Module, channels: int) -> tuple[int, int]:
    """Height and width of a patch: of the configuration, or of the patch embedding."""
    size = getattr(_find_vision_config(model), "patch_size", None)
    if isinstance(size, int) and size > 0:
        return size, size
    if isinstance(size, tuple | list) and len(size) == 2 and all(type(s) is int for s in size):
        return int(size[0]), int(size[1])
    for module in model.modules():
        if not isinstance(module, torch.nn.Conv2d) or module.in_channels != channels:
            continue
        height, width = module.kernel_size
        if module.stride == (height, width) and min(height, width) > 1:
            return height, width
    raise PatchError(
        "the size of its patches is unknown: neither a configuration nor a layer has it"
    )


def _find_window_size(model: nn.Module) -> int | None:
    size = getattr(_find_vision_config(model), "window_size", None)
    return size if isinstance(size, int) and size > 0 else None


def _name_prefix(model: nn.Module, count: int) -> tuple[str, ...]:
    """Names of the positions before the patches."""
    kind = str(getattr(_find_vision_config(model), "model_type", ""))
    names = PREFIX_NAMES.get(kind, ("CLS",))
    if len(names) <= count:
        return (*names, *(f"REG {index + 1}" for index in range(count - len(names))))
    return names[:count]

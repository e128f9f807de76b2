"""The image that a vision transformer reads: its picture, its grid of patches, and their positions.

    image = ProbeImage(png, rows=14, columns=14, first_patch=1, tokens=197, layers=("layers.0", …))
    image.label_tokens()                      ["CLS", "0,0", "0,1", …]
    rows, rollout = compute_image_attention(capture, image)

A patch is one position of the sequence; positions before the patches are CLS and its relatives. A
run keeps the image as metadata, so that its pages can draw weights over it at every step.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.rollout import iter_rollouts
from neural.core.png import PNG_MAGIC, encode_png
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.capture.capture_result import Capture

IMAGE_KEY = "probe/image"
"""Key of the image in the metadata of a run."""
ROWS_ARRAY, ROLLOUT_ARRAY = "image/rows", "image/rollout"
"""Arrays of a run: [layer, head, token] and [layer, token] at each step with maps."""
MAX_PICTURE_PIXELS = 336
"""Longer side of the stored picture: enough to recognise what a patch shows."""
MAX_ROLLOUT_TOKENS = 2048
"""Rollout takes O(N³) time: with more positions it is left out."""


@dataclass(frozen=True)
class ProbeImage:
    """One image as the model sees it, cut into patches."""

    png: bytes
    """The picture: exactly the patches, after the resizing and cropping of the processor."""
    rows: int
    columns: int
    first_patch: int
    """Position of the upper left patch; the others follow row by row."""
    tokens: int
    """Positions of the sequence, patches and others."""
    layers: tuple[str, ...]
    """Names of the layers that attend from these positions to these positions."""
    is_complete: bool = True
    """Whether these are all layers that read the image: rollout needs them all."""
    prefix_names: tuple[str, ...] = ()
    """Names of the positions before the patches."""
    picture_size: tuple[int, int] = (0, 0)
    """Height and width in pixels of the part of the input that the patches cover."""

    @property
    def patches(self) -> int:
        """Number of patches."""
        return self.rows * self.columns

    @property
    def has_cls(self) -> bool:
        """Whether the sequence begins with CLS; else means over all patches replace its row."""
        return self.first_patch > 0

    @property
    def query_name(self) -> str:
        """The query that is shown by default."""
        return self.prefix_names[0] if self.prefix_names else "mean of all patches"

    def label_tokens(self) -> list[str]:
        """A text for every position: `CLS`, then row and column of each patch, counted from 0."""
        patches = [f"{row},{column}" for row in range(self.rows) for column in range(self.columns)]
        rest = self.tokens - self.first_patch - self.patches
        return [*self.prefix_names, *patches, *(f"extra {index + 1}" for index in range(rest))]

    def to_grid(self, weights: Float[np.ndarray, " N"]) -> Float[np.ndarray, "rows columns"]:
        """The weights of the patches, as they lie in the image."""
        patches = weights[self.first_patch : self.first_patch + self.patches]
        return patches.reshape(self.rows, self.columns)

    def to_metadata(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "png": base64.b64encode(self.png).decode(),
            "grid": [self.rows, self.columns],
            "first_patch": self.first_patch,
            "tokens": self.tokens,
            "layers": list(self.layers),
            "is_complete": self.is_complete,
            "prefix_names": list(self.prefix_names),
        }

    @classmethod
    def from_metadata(cls, data: Any) -> ProbeImage | None:
        """Read `to_metadata`; None for anything else, since a folder may come from anybody."""
        try:
            rows, columns = data["grid"]
            image = cls(
                base64.b64decode(data["png"], validate=True),
                rows,
                columns,
                data["first_patch"],
                data["tokens"],
                tuple(data["layers"]),
                data["is_complete"] is True,
                tuple(data["prefix_names"]),
            )
            counts = (image.rows, image.columns, image.tokens, image.first_patch + 1)
            is_valid = (
                all(type(count) is int and count > 0 for count in counts)
                and image.first_patch + image.patches <= image.tokens
                and len(image.prefix_names) == image.first_patch
                and all(isinstance(name, str) for name in (*image.layers, *image.prefix_names))
                and image.png.startswith(PNG_MAGIC)
            )
        except (KeyError, TypeError, ValueError):
            return None
        return image if is_valid else None


def encode_picture(
    pixels: Tensor,
    height: int,
    width: int,
    *,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
) -> bytes:
    """PNG of the upper left `height` × `width` of pixel values (C, H, W).

    `mean` and `std` are those with which an image processor normalised the pixels. Without them,
    the range of values is stretched to 0 … 255.
    """
    values = pixels[:, :height, :width].detach().float().cpu().numpy()
    values = np.nan_to_num(values)
    if len(mean) == len(std) == len(values):
        values = values * np.array(std)[:, None, None] + np.array(mean)[:, None, None]
    else:
        low, high = float(values.min()), float(values.max())
        values = (values - low) / (high - low or 1.0)
    if len(values) != 3:  # grey, or channels that are no colours
        values = np.repeat(values[:1], 3, axis=0)
    longer_side = max(height, width)
    if longer_side > MAX_PICTURE_PIXELS:
        size = [max(1, round(side * MAX_PICTURE_PIXELS / longer_side)) for side in (height, width)]
        batch = torch.from_numpy(values)[None]
        values = functional.interpolate(batch, size, mode="bicubic", antialias=True)[0].numpy()
    rgb = np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
    return encode_png(rgb)


def compute_image_attention(
    capture: Capture, image: ProbeImage, example: int = 0
) -> tuple[Float[np.ndarray, "L H N"], Float[np.ndarray, "L N"]]:
    """The row of CLS in every head, and the rollout up to every layer, over all positions.

    Without CLS, the mean over the rows of all patches. NaN for layers that do not attend over the
    image, heads that do not exist, and rollouts that cannot be computed.
    """
    heads = max((call.heads for call in capture), default=0)
    rows = np.full((len(capture), heads, image.tokens), np.nan, np.float32)
    rollouts = np.full((len(capture), image.tokens), np.nan, np.float32)
    queries = slice(0, 1) if image.has_cls else slice(0, image.patches)
    shown = [
        (layer, call)
        for layer, (name, call) in enumerate(zip(capture.layer_names(), capture, strict=True))
        if name in image.layers and call.attention is not None
    ]

    def iter_maps() -> Any:
        for layer, call in shown:
            maps = call.maps(examples=example + 1)[example]
            rows[layer, : call.heads] = maps[:, queries].mean(axis=1)
            yield maps

    has_rollout = (
        image.is_complete and len(shown) == len(image.layers) and image.tokens <= MAX_ROLLOUT_TOKENS
    )
    if not has_rollout:
        for _ in iter_maps():
            pass
        return rows, rollouts
    for (layer, _), rollout in zip(shown, iter_rollouts(iter_maps()), strict=True):
        rollouts[layer] = rollout[queries].mean(axis=0)
    return rows, rollouts

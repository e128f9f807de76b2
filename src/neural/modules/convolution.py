"""Sliding windows over one or two axes: what convolution and pooling layers share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from neural.language.shapes import Dim, Misfit, Shape, numbers
from neural.modules.late import Module, functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

PADDINGS = ("valid", "same")


def windows(
    x: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], padding: str, name: str
) -> tuple[Dim, ...]:
    """How many windows fit along each axis; an open size stays open, with a mark where it shrinks."""
    out: list[Dim] = []
    for dim, window, stride in zip(x, kernel, strides, strict=True):
        if isinstance(dim, str):
            unchanged = stride == 1 and (padding == "same" or window == 1)
            out.append(dim if unchanged else f"{dim.rstrip(chr(39))}'")
        elif padding == "same":
            out.append(-(-dim // stride))
        elif window > dim:
            left = f"{dim} positions are" if dim != 1 else "1 position is"
            raise Misfit(
                "E0303", f"`{name}` is {window}, but only {left} left", at=[name],
                helps=[f"at most {dim}, or `padding=\"same\"`"],
            )  # fmt: skip
        else:
            out.append((dim - window) // stride + 1)
    return tuple(out)


def same_padding(sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """How much to add around each axis so that ceil(size / stride) windows fit; last axis first, as torch wants it."""
    pads: list[int] = []
    for size, window, stride in reversed(list(zip(sizes, kernel, strides, strict=True))):
        fit = (size + stride - 1) // stride   # not -(-size // stride): ONNX rounds towards 0
        total = (fit - 1) * stride + window - size
        total = max(0, total) if window < stride else total   # asked only where it can be: a traced size is any size
        pads += [total // 2, total - total // 2]
    return pads


def padded_size(x: Shape, kernel: Sequence[int], strides: Sequence[int]) -> int:
    """How many numbers the input has with its padding; 0 where it needs none."""
    *sizes, channels = numbers(x)
    pads = same_padding(sizes, kernel, strides)
    wider = [size + before + after for size, before, after in zip(reversed(sizes), pads[::2], pads[1::2], strict=True)]
    return prod(wider) * channels if any(pads) else 0


def window_mask(
    mask: Bool[Tensor, "B T"], windows: int, window: int, stride: int, same: bool
) -> Bool[Tensor, "B W"]:
    """The padding mask of what so many windows over time give.

    With "same", window i stands at position i × stride and is real where that position is. With
    "valid", a window is real where all its positions are: a padded sequence has the same real
    windows as it has alone.
    """
    if same or window == 1:
        # by index, not by a slice: torch.export then knows that mask and output have one length
        return mask[:, torch.arange(windows, device=mask.device) * stride]
    # in floats and one row high, like the pooling below: traced, this works for any length
    padding = (~mask).float()[:, None, None, :]
    return functional.max_pool2d(padding, (1, window), (1, stride))[:, 0, 0] == 0


class Convolution(Module):
    """A convolution over one or two axes, channels last."""

    def __init__(
        self, channels: int, filters: int, kernel: tuple[int, ...], strides: tuple[int, ...], same: bool,
        activation: nn.Module,
    ) -> None:  # fmt: skip
        super().__init__()
        kind: Any = nn.Conv1d if len(kernel) == 1 else nn.Conv2d
        # a single-position window that jumps is a choice of positions: made by slicing, because oneDNN's backward
        # of strided 1×1 convolutions writes outside its memory (oneDNN issue 6035)
        self.skips = all(size == 1 for size in kernel)
        self.convolution = kind(channels, filters, kernel, stride=1 if self.skips else strides)
        self.kernel, self.strides, self.same = kernel, strides, same
        self.activation = activation

    def forward(self, x: Float[Tensor, "B *S C"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B *S F"]:
        """Padded positions count as zeros."""
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0)
        x = x.movedim(-1, 1)
        if self.skips:
            x = x[:, :, *(slice(None, None, stride) for stride in self.strides)]
        elif self.same:
            x = functional.pad(x, same_padding(x.shape[2:], self.kernel, self.strides))
        return self.activation(self.convolution(x).movedim(1, -1))

    def output_mask(
        self, mask: Bool[Tensor, "B T"], y: Float[Tensor, "B W C"]
    ) -> Bool[Tensor, "B W"]:
        """Which windows over time are real; `y` is what they gave."""
        return window_mask(mask, y.shape[1], self.kernel[0], self.strides[0], self.same)


class MaxPooling(Module):
    """The largest number in every window, channels last."""

    def __init__(self, pool: tuple[int, ...], strides: tuple[int, ...], same: bool) -> None:
        super().__init__()
        self.pool, self.strides, self.same = pool, strides, same

    def forward(self, x: Float[Tensor, "B *S C"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B *S C"]:
        """Padded positions are never the largest; a window of nothing else gives 0."""
        lowest = float("-inf")
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), lowest)
        x = x.movedim(-1, 1)
        if self.same:
            x = functional.pad(x, same_padding(x.shape[2:], self.pool, self.strides), value=lowest)
        line = len(self.pool) == 1   # a picture one high: traced, torch's max_pool1d knows one length only
        x = x.unsqueeze(2) if line else x
        x = functional.max_pool2d(x, (1, *self.pool)[-2:], (1, *self.strides)[-2:])
        x = (x.squeeze(2) if line else x).movedim(1, -1)
        return x.masked_fill(x == lowest, 0)

    def output_mask(
        self, mask: Bool[Tensor, "B T"], y: Float[Tensor, "B W C"]
    ) -> Bool[Tensor, "B W"]:
        """Which windows over time are real; `y` is what they gave."""
        return window_mask(mask, y.shape[1], self.pool[0], self.strides[0], self.same)

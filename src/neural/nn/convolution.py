"""Convolution and max pooling over one or two axes, channels last.

`sizes` are the sizes of the convolved axes, without batch and channels; `kernel` (the window) and
`strides` have one number per axis. The shape functions accept symbolic sizes (strings).

Tensor axes: B batch, S one or two convolved axes, T time, W windows, C channels, F filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from neural.language.shapes import Dim, Shape, ShapeError, require_known_sizes
from neural.nn.lazy_torch import Module, functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

PADDING_MODES = ("valid", "same")
""""valid": only complete windows; "same": a window around every `stride`-th position."""


def count_windows(
    sizes: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], padding: str, argument: str
) -> tuple[Dim, ...]:
    """Number of windows along each axis; a symbolic size T stays T, or becomes T' if it changes.

    `argument` is the name of the kernel size in error messages.
    """
    out: list[Dim] = []
    for dim, window, stride in zip(sizes, kernel, strides, strict=True):
        if isinstance(dim, str):
            is_unchanged = stride == 1 and (padding == "same" or window == 1)
            out.append(dim if is_unchanged else f"{dim.rstrip(chr(39))}'")
        elif padding == "same":
            out.append(-(-dim // stride))
        elif window > dim:
            positions = f"{dim} positions are" if dim != 1 else "1 position is"
            raise ShapeError(
                "E0303",
                f"`{argument}` is {window}, but only {positions} left",
                at=[argument],
                helps=[f'at most {dim}, or `padding="same"`'],
            )
        else:
            out.append((dim - window) // stride + 1)
    return tuple(out)


def compute_same_padding(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """Amounts of padding that give ceil(size / stride) windows: before and after each axis.

    The last axis comes first, as in `functional.pad`.
    """
    pads: list[int] = []
    for size, window, stride in reversed(list(zip(sizes, kernel, strides, strict=True))):
        # Rounded up. Not -(-size // stride): in an ONNX export, // rounds towards 0.
        windows = (size + stride - 1) // stride
        total = (windows - 1) * stride + window - size
        # Only window < stride can be negative. `max` is avoided otherwise: torch.export would
        # turn a traced size into a constant.
        total = max(0, total) if window < stride else total
        pads += [total // 2, total - total // 2]
    return pads


def count_padded_elements(x: Shape, kernel: Sequence[int], strides: Sequence[int]) -> int:
    """Number of values of an input of shape `x` after "same" padding; 0 if nothing is added."""
    *sizes, channels = require_known_sizes(x)
    pads = compute_same_padding(sizes, kernel, strides)
    padded_sizes = [
        size + before + after
        for size, before, after in zip(reversed(sizes), pads[::2], pads[1::2], strict=True)
    ]
    return prod(padded_sizes) * channels if any(pads) else 0


def window_mask(
    mask: Bool[Tensor, "B T"], num_windows: int, window: int, stride: int, same: bool
) -> Bool[Tensor, "B W"]:
    """Padding mask of `num_windows` windows over time: True for real windows.

    With `same`, window i is real if position i × stride is. Otherwise a window is real if all its
    positions are: a padded sequence has the same real windows as without padding.
    """
    if same or window == 1:
        # An index, not a slice: then torch.export knows that mask and output have equal lengths.
        return mask[:, torch.arange(num_windows, device=mask.device) * stride]
    # max_pool2d, not max_pool1d: if traced, only the former works for any length.
    padding = (~mask).float()[:, None, None, :]
    return functional.max_pool2d(padding, (1, window), (1, stride))[:, 0, 0] == 0


class Convolution(Module):
    """A convolution over one or two axes, channels last; `same` selects padding mode "same"."""

    def __init__(
        self,
        channels: int,
        filters: int,
        kernel: tuple[int, ...],
        strides: tuple[int, ...],
        same: bool,
        activation: nn.Module,
    ) -> None:
        super().__init__()
        conv_class: Any = nn.Conv1d if len(kernel) == 1 else nn.Conv2d
        # A 1×1 convolution with a stride skips positions. Slicing does that here, because oneDNN's
        # backward of strided 1×1 convolutions writes outside its memory (oneDNN issue 6035).
        self.is_pointwise = all(size == 1 for size in kernel)
        self.convolution = conv_class(
            channels, filters, kernel, stride=1 if self.is_pointwise else strides
        )
        self.kernel, self.strides, self.same = kernel, strides, same
        self.activation = activation

    def forward(
        self, x: Float[Tensor, "B *S C"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B *S F"]:
        """Positions where `mask` is False count as zeros."""
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0)
        x = x.movedim(-1, 1)
        if self.is_pointwise:
            x = x[:, :, *(slice(None, None, stride) for stride in self.strides)]
        elif self.same:
            x = functional.pad(x, compute_same_padding(x.shape[2:], self.kernel, self.strides))
        return self.activation(self.convolution(x).movedim(1, -1))

    def output_mask(
        self, mask: Bool[Tensor, "B T"], y: Float[Tensor, "B W C"]
    ) -> Bool[Tensor, "B W"]:
        """Padding mask of the output `y`."""
        return window_mask(mask, y.shape[1], self.kernel[0], self.strides[0], self.same)


class MaxPooling(Module):
    """Maximum of every window, channels last."""

    def __init__(self, pool: tuple[int, ...], strides: tuple[int, ...], same: bool) -> None:
        super().__init__()
        self.pool, self.strides, self.same = pool, strides, same

    def forward(
        self, x: Float[Tensor, "B *S C"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B *S C"]:
        """Padding is never the maximum; a window with nothing else gives 0."""
        lowest = float("-inf")
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), lowest)
        x = x.movedim(-1, 1)
        if self.same:
            x = functional.pad(
                x, compute_same_padding(x.shape[2:], self.pool, self.strides), value=lowest
            )
        # 1-D input as an image of height 1: a traced max_pool1d works for one length only.
        is_1d = len(self.pool) == 1
        x = x.unsqueeze(2) if is_1d else x
        x = functional.max_pool2d(x, (1, *self.pool)[-2:], (1, *self.strides)[-2:])
        x = (x.squeeze(2) if is_1d else x).movedim(1, -1)
        return x.masked_fill(x == lowest, 0)

    def output_mask(
        self, mask: Bool[Tensor, "B T"], y: Float[Tensor, "B W C"]
    ) -> Bool[Tensor, "B W"]:
        """Padding mask of the output `y`."""
        return window_mask(mask, y.shape[1], self.pool[0], self.strides[0], self.same)

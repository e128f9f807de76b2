"""What every layer that takes a padding mask promises: padding is as good as not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural.contract.measured import B, batch, built
from neural.contract.promise import hold, promise, same
from neural.language.layer import Layer
from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor


def masked(entry: type[Layer]) -> bool:
    """Whether it takes a mask."""
    return entry.tiny()[0].uses_mask


def padding(time: int) -> Tensor:
    """Two sequences with real positions and padding: at the end, in the middle, at the start."""
    mask = torch.ones(B, time, dtype=torch.bool)
    mask[0, 3], mask[0, -2:], mask[1, 0] = False, False, False
    return mask


def real(layer: Layer, y: Tensor, mask: Tensor) -> Tensor:
    """What padding must not change: everything, or where time is kept, what stands at real positions."""
    if not (layer.keeps_time and y.ndim == 3 and y.shape[1] >= mask.shape[1]):
        return y
    return y[:, : mask.shape[1]][mask]


@promise(applies=masked)
def what_stands_in_the_padding_changes_nothing(entry: type[Layer]) -> None:
    """To the last bit; and without the mask it would."""
    layer, shape, module = built(entry)
    module.eval()
    x, mask = batch(layer, shape), padding(shape[0])
    other = torch.where(mask.unsqueeze(-1), x, 100 * torch.randn_like(x))
    alike = torch.equal(real(layer, module(x, mask), mask), real(layer, module(other, mask), mask))
    hold(alike, "what stands at padded positions changes the result")
    alike = torch.allclose(real(layer, module(x), mask), real(layer, module(other), mask))
    hold(not alike, "what stands at padded positions changes nothing even without a mask: then `uses_mask` is not true")


@promise(applies=masked)
def more_padding_changes_nothing(entry: type[Layer]) -> None:
    """A batch is as long as its longest sequence."""
    layer, shape, module = built(entry)
    module.eval()
    x, mask = batch(layer, shape), padding(shape[0])
    y = module(x, mask)
    if y.ndim == 3 and not (layer.keeps_time or layer.maps_mask):
        return   # windows of its own: what stands where depends on the length
    longer = torch.cat((x, torch.randn(B, 5, *shape[1:])), dim=1)
    longer_mask = torch.cat((mask, torch.zeros(B, 5, dtype=torch.bool)), dim=1)
    if layer.maps_mask:
        windows = module(longer, longer_mask)
        windows = windows[module.output_mask(longer_mask, windows)]
        expected = y[module.output_mask(mask, y)]
        same(windows, expected, "five positions of padding more change real outputs")
        return
    found = real(layer, module(longer, longer_mask), mask)
    same(found, real(layer, y, mask), "five positions of padding more change the result")


def maps_mask(entry: type[Layer]) -> bool:
    """Whether it gives a mask for what comes out."""
    return entry.tiny()[0].maps_mask


@promise(applies=maps_mask)
def the_mask_of_the_output_has_its_length(entry: type[Layer]) -> None:
    """And nothing is padding where nothing was."""
    layer, shape, module = built(entry)
    y, mask = module.eval()(batch(layer, shape)), padding(shape[0])
    output_mask: Any = module.output_mask
    fits = output_mask(mask, y).shape == y.shape[:2]
    hold(fits, "`output_mask` does not have one value for each position of the output")
    everything = output_mask(torch.ones_like(mask), y)
    hold(everything.all(), "`output_mask` makes padding of a sequence that has none")


@promise(applies=masked)
def a_mask_that_keeps_everything_is_no_mask(entry: type[Layer]) -> None:
    """True means real."""
    layer, shape, module = built(entry)
    module.eval()
    x = batch(layer, shape)
    kept = module(x, torch.ones(B, shape[0], dtype=torch.bool))
    same(kept, module(x), "a mask that is True everywhere changes the result")


@promise(applies=masked)
def a_sequence_of_nothing_but_padding_is_finite_forward_and_backward(entry: type[Layer]) -> None:
    """Never NaN."""
    layer, shape, module = built(entry)
    x = batch(layer, shape).requires_grad_()
    y = module(x, torch.tensor([True, False]).unsqueeze(-1).expand(B, shape[0]))
    hold(y.isfinite().all(), "a sequence of padding alone gives NaN or infinity")
    y.sum().backward()
    finite = all(one.grad is not None and one.grad.isfinite().all() for one in (x, *module.parameters()))
    hold(finite, "a sequence of padding alone gives a gradient that is NaN or infinite")

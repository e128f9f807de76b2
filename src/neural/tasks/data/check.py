"""The inputs against the network, before anything starts: sizes, whole ids, finite numbers, masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from neural.language.network import Network, Placed
from neural.language.shapes import Misfit, Shape, show
from neural.modules.build import any_length
from neural.modules.layers.batch_normalization import BatchNormalization
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.tasks.data.source import Arrays

BLOCK = 1 << 22
"""Numbers looked at at once: data on disk may be larger than the memory."""


def check_inputs(arrays: Arrays, network: Network, where: str) -> None:
    """Refuse examples that the network cannot take; the message names the array, the place and both shapes."""
    first, *others = arrays
    count = len(arrays[first]) if arrays[first].ndim else 0
    for name in others:
        if arrays[name].ndim == 0 or len(arrays[name]) != count:
            raise TaskError(
                f"{where}: `{first}` and `{name}` differ in length: {sizes(arrays[first])} and {sizes(arrays[name])}"
            )
    if count == 0:
        raise TaskError(f"{where}: there are no examples; `{first}` is {sizes(arrays[first])}")
    for name, mask, stream in (("x", "mask", ""), ("source", "mask", "source"), ("target", "target_mask", "target")):
        if name in arrays:
            check_input(arrays[name], f"{where}: `{name}`", network, stream)
            if mask in arrays:
                check_mask(arrays[mask], arrays[name], f"{where}: `{mask}`", name)


def check_input(x: np.ndarray, name: str, network: Network, stream: str) -> None:
    """One array against `input:`. A declared size must be met, an open one may be any."""
    wanted = network.input
    if stream == "target" and any_length(network, "target"):
        wanted = ("T", *wanted[1:])
    given = x.shape[1:]
    if len(given) != len(wanted) or any(
        isinstance(want, int) and want != got for want, got in zip(wanted, given, strict=True)
    ):
        raise TaskError(
            f"{name} is {sizes(x)}, but {network.name} takes {show(wanted, batch=True)}"
            + _way_out(given, wanted, network)
        )
    if x.dtype.kind not in "biuf":
        raise TaskError(f"{name} holds {x.dtype}, not numbers")
    if network.ids:
        check_whole(x, name, vocabulary(network), f"`Embedding` has {vocabulary(network)} ids")
        pad = padding(network)
        empty = first(x, lambda part: (part == pad).all(axis=1)) if pad is not None else None
        if empty is not None:
            raise TaskError(f"{name}: example {empty[0]} is padding (id {pad}) from end to end; remove it")
    else:
        check_finite(x, name)


def check_finite(x: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity."""
    place = first(x, lambda part: ~np.isfinite(part)) if x.dtype.kind == "f" else None
    if place is not None:
        raise TaskError(f"{name} has {x[place]} at {list(place)}; remove or replace such examples")


def check_whole(x: np.ndarray, name: str, count: int, meaning: str, *, besides: int = 0) -> None:
    """Refuse what is not a whole number of 0 … count - 1; `besides` is one more that may stand there."""
    place = first(x, lambda part: ~((part >= 0) & (part < count) & (part == np.floor(part)) | (part == besides)))
    if place is not None:
        raise TaskError(
            f"{name} has {x[place]} at {list(place)}, but must be whole numbers from 0 to {count - 1}: {meaning}"
        )


def check_mask(mask: np.ndarray, x: np.ndarray, name: str, beside: str) -> None:
    """A mask is 1 where a sequence is real: one number per position, and at least one that is real."""
    if mask.shape != x.shape[:2]:
        wanted = f"{show(x.shape[:2])}: a number per position of `{beside}`"
        raise TaskError(f"{name} is {sizes(mask)}, but must be {wanted}")
    place = first(mask, lambda part: (part != 0) & (part != 1))
    if place is not None:
        raise TaskError(f"{name} has {mask[place]} at {list(place)}, but must be 1 (real) or 0 (padding)")
    empty = np.flatnonzero(~np.asarray(mask != 0).any(axis=1))
    if len(empty):
        raise TaskError(f"{name}: example {empty[0]} is padding from end to end; remove it")


def check_batches(network: Network, size: int, where: str) -> None:
    """Refuse batches of one number per feature where a layer takes its mean and deviation over the batch."""
    for placed in network.layers:
        if size == 1 and isinstance(placed.layer, BatchNormalization) and all(dim == 1 for dim in placed.given[:-1]):
            raise TaskError(f"{where}: batches hold one example, but `BatchNormalization` compares those of a batch")


def gives(network: Network, arrays: Arrays) -> tuple[int, ...]:
    """The shape of what the network predicts for such inputs, with every size known."""
    given: Shape = arrays["target" if network.two_streams else "x"].shape[1:]
    for placed in network.layers:
        if placed.stream == "source" and network.two_streams:
            continue
        try:
            for _ in range(placed.copies):
                given = placed.layer.shape(given)
        except Misfit as misfit:
            raise TaskError(f"{network.name} cannot take inputs of this size: {misfit.message}") from None
    return tuple(int(dim) for dim in given)


def vocabulary(network: Network) -> int:
    """How many ids there are."""
    return int(getattr(embedding(network).layer, "input_dim", 0))


def padding(network: Network) -> int | None:
    """The id that fills up short sequences, where the network has one."""
    return getattr(embedding(network).layer, "pad_id", None) if network.ids else None


def embedding(network: Network) -> Placed:
    """The layer that takes the ids."""
    return next(placed for placed in network.layers if placed.layer.role == "embedding")


def first(array: np.ndarray, wrong: Callable[[np.ndarray], np.ndarray]) -> tuple[int, ...] | None:
    """The first place where something is wrong, block by block."""
    for start, block in _blocks(array):
        found = np.argwhere(wrong(block))
        if len(found):
            row, *others = (int(one) for one in found[0])
            return (start + row, *others)
    return None


def _blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    rows = max(1, BLOCK // max(1, array[:1].size))
    for start in range(0, len(array), rows):
        yield start, array[start : start + rows]


def sizes(array: np.ndarray) -> str:
    """A shape with all its sizes."""
    return show(array.shape)


def _way_out(given: tuple[int, ...], wanted: Shape, network: Network) -> str:
    """What to write instead, where that is plain."""
    if len(given) != len(wanted) and np.prod(given) == np.prod([dim for dim in wanted if isinstance(dim, int)]):
        return f"; reshape it to (-1, {', '.join(map(str, wanted))})"
    if len(given) != len(wanted):
        return ""
    has_time = network.ids or len(wanted) > 1
    if has_time and given[1:] == wanted[1:] and any_length(network, "source"):
        return f"; write `input: {show(given)}`, or `input: {show(('None', *given[1:]))}` for any length"
    return f"; write `input: {show(given)}`"

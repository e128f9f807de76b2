"""Checks of inputs against the network before training: shapes, token ids, finite values, masks.

Arrays are a dict by name: `x`, or `source` and `target` for an encoder-decoder (its two streams),
and their masks. `network.input` is the shape of one example that the program declares. A string in
it, such as "T", is an open size: the program accepts any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.language.network import Network, PlacedLayer
from neural.language.shapes import Shape, ShapeError, format_shape
from neural.nn.build import accepts_any_length
from neural.nn.layers.batch_normalization import BatchNormalization

if TYPE_CHECKING:
    from neural.data.source import Arrays

MAX_BLOCK_NUMBERS = 1 << 22
"""Largest number of elements checked at once: memory-mapped data may be larger than memory."""


def check_inputs(arrays: Arrays, network: Network, data_name: str) -> None:
    """Raise TaskError if the network cannot take the examples.

    The message names the array, the position and both shapes.
    """
    first, *others = arrays
    count = len(arrays[first]) if arrays[first].ndim else 0
    for name in others:
        if arrays[name].ndim == 0 or len(arrays[name]) != count:
            raise TaskError(
                f"{data_name}: `{first}` and `{name}` differ in length: "
                f"{format_array_shape(arrays[first])} and {format_array_shape(arrays[name])}"
            )
    if count == 0:
        raise TaskError(
            f"{data_name}: there are no examples; `{first}` is {format_array_shape(arrays[first])}"
        )
    for name, mask_name, stream in (
        ("x", "mask", ""),
        ("source", "mask", "source"),
        ("target", "target_mask", "target"),
    ):
        if name in arrays:
            check_input(arrays[name], f"{data_name}: `{name}`", network, stream)
            if mask_name in arrays:
                check_mask(arrays[mask_name], arrays[name], f"{data_name}: `{mask_name}`", name)


def check_input(x: np.ndarray, name: str, network: Network, stream: str) -> None:
    """Check one array against `input:` of the program. An open size accepts any length.

    `stream` is "source" or "target" in an encoder-decoder, else "".
    """
    expected = network.input
    if stream == "target" and accepts_any_length(network, "target"):
        expected = ("T", *expected[1:])
    shape = x.shape[1:]
    if len(shape) != len(expected) or any(
        isinstance(expected_dim, int) and expected_dim != dim
        for expected_dim, dim in zip(expected, shape, strict=True)
    ):
        raise TaskError(
            f"{name} is {format_array_shape(x)}, but {network.name} takes "
            f"{format_shape(expected, batch=True)}" + _suggest_input(shape, expected, network)
        )
    if x.dtype.kind not in "biuf":
        raise TaskError(f"{name} holds {x.dtype}, not numbers")
    if network.takes_token_ids:
        check_integers(
            x,
            name,
            get_vocabulary_size(network),
            f"`Embedding` has {get_vocabulary_size(network)} ids",
        )
        pad_id = get_pad_id(network)
        empty_index = (
            find_first(x, lambda block: (block == pad_id).all(axis=1))
            if pad_id is not None
            else None
        )
        if empty_index is not None:
            raise TaskError(
                f"{name}: example {empty_index[0]} is only padding (id {pad_id}); remove it"
            )
    else:
        check_finite(x, name)


def check_finite(x: np.ndarray, name: str) -> None:
    """Raise TaskError at the first NaN or infinite value."""
    position = find_first(x, lambda block: ~np.isfinite(block)) if x.dtype.kind == "f" else None
    if position is not None:
        raise TaskError(
            f"{name} has {x[position]} at {list(position)}; remove or replace such examples"
        )


def check_integers(
    x: np.ndarray, name: str, count: int, reason: str, *, extra_value: int = 0
) -> None:
    """Raise TaskError unless all values are integers from 0 to `count - 1`, or `extra_value`.

    `reason` explains the limit in the message.
    """
    position = find_first(
        x,
        lambda block: (
            ~((block >= 0) & (block < count) & (block == np.floor(block)) | (block == extra_value))
        ),
    )
    if position is not None:
        raise TaskError(
            f"{name} has {x[position]} at {list(position)}, but must hold integers from 0 to "
            f"{count - 1}: {reason}"
        )


def check_mask(mask: np.ndarray, x: np.ndarray, name: str, input_name: str) -> None:
    """Check that a mask has one value per position, 1 (real) or 0 (padding), and no empty row."""
    if mask.shape != x.shape[:2]:
        expected = f"{format_shape(x.shape[:2])}: one value per position of `{input_name}`"
        raise TaskError(f"{name} is {format_array_shape(mask)}, but must be {expected}")
    position = find_first(mask, lambda block: (block != 0) & (block != 1))
    if position is not None:
        raise TaskError(
            f"{name} has {mask[position]} at {list(position)}, but must be 1 (real) or 0 (padding)"
        )
    empty_examples = np.flatnonzero(~np.asarray(mask != 0).any(axis=1))
    if len(empty_examples):
        raise TaskError(f"{name}: example {empty_examples[0]} is only padding; remove it")


def check_batches(network: Network, batch_size: int, data_name: str) -> None:
    """Raise TaskError if BatchNormalization would see one value per feature: its variance is 0.

    That is so for batches of one example, unless its inputs have several positions.
    """
    for placed_layer in network.layers:
        if (
            batch_size == 1
            and isinstance(placed_layer.layer, BatchNormalization)
            and all(dim == 1 for dim in placed_layer.input_shape[:-1])
        ):
            raise TaskError(
                f"{data_name}: batches hold one example, but `BatchNormalization` needs several; "
                "use a larger `batch_size`"
            )


def compute_output_shape(network: Network, arrays: Arrays) -> tuple[int, ...]:
    """Shape of the network's predictions for these inputs, without the batch axis."""
    shape: Shape = arrays["target" if network.is_encoder_decoder else "x"].shape[1:]
    for placed_layer in network.layers:
        if placed_layer.stream == "source" and network.is_encoder_decoder:
            continue
        try:
            for _ in range(placed_layer.copies):
                shape = placed_layer.layer.shape(shape)
        except ShapeError as error:
            raise TaskError(
                f"{network.name} cannot take inputs of this size: {error.message}"
            ) from None
    return tuple(int(dim) for dim in shape)


def get_vocabulary_size(network: Network) -> int:
    """Number of token ids of the embedding."""
    return int(getattr(find_embedding(network).layer, "input_dim", 0))


def get_pad_id(network: Network) -> int | None:
    """The padding id of the embedding, or None."""
    return (
        getattr(find_embedding(network).layer, "pad_id", None) if network.takes_token_ids else None
    )


def find_embedding(network: Network) -> PlacedLayer:
    """The layer that takes the token ids."""
    return next(
        placed_layer for placed_layer in network.layers if placed_layer.layer.role == "embedding"
    )


def find_first(
    array: np.ndarray, is_wrong: Callable[[np.ndarray], np.ndarray]
) -> tuple[int, ...] | None:
    """Index of the first element where `is_wrong` is true, or None. Works block by block."""
    for start, block in _iter_blocks(array):
        positions = np.argwhere(is_wrong(block))
        if len(positions):
            row, *rest = (int(index) for index in positions[0])
            return (start + row, *rest)
    return None


def _iter_blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows, each with the index of its first row."""
    rows_per_block = max(1, MAX_BLOCK_NUMBERS // max(1, array[:1].size))
    for start in range(0, len(array), rows_per_block):
        yield start, array[start : start + rows_per_block]


def format_array_shape(array: np.ndarray) -> str:
    """An array's shape as text."""
    return format_shape(array.shape)


def _suggest_input(shape: tuple[int, ...], expected: Shape, network: Network) -> str:
    """Hint how to change the data or `input:`, or an empty string; shapes are without the batch."""
    if len(shape) != len(expected) and np.prod(shape) == np.prod(
        [dim for dim in expected if isinstance(dim, int)]
    ):
        return f"; reshape it to (-1, {', '.join(map(str, expected))})"
    if len(shape) != len(expected):
        return ""
    has_time = network.takes_token_ids or len(expected) > 1
    if has_time and shape[1:] == expected[1:] and accepts_any_length(network, "source"):
        any_length = format_shape(("None", *shape[1:]))
        return f"; write `input: {format_shape(shape)}`, or `input: {any_length}` for any length"
    return f"; write `input: {format_shape(shape)}`"


def reshape_rows(rows: np.ndarray, network: Network, data_name: str) -> np.ndarray:
    """Rows (N, F) reshaped to the network's input; one open size is inferred."""
    width = rows.shape[1]
    open_sizes = [dim for dim in network.input if isinstance(dim, str)]
    # product of the sizes that are not open
    known_size = int(np.prod([dim for dim in network.input if isinstance(dim, int)], dtype=int))
    if known_size != width if not open_sizes else (width % known_size or len(open_sizes) > 1):
        raise TaskError(
            f"{data_name}: an example has {width} numbers, but {network.name} takes "
            f"{format_shape(network.input)}" + ("" if open_sizes else f": {known_size}")
        )
    return rows.reshape(len(rows), *(-1 if isinstance(dim, str) else dim for dim in network.input))

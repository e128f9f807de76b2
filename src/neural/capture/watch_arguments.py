"""Check the arguments of `neural.watch`: the model, and the `tokens` and `real` of its positions.

    tokens = convert_positions("tokens", [[5, 1, 7]])    a tensor (B, T): examples × positions
    check_positions("tokens", tokens, capture)           after the model ran: its shape fits

Every error says what to pass instead. `explain_input_error` does so if the model itself fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from neural.nn.lazy_torch import nn, torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.capture_result import CapturedCall

PositionName = Literal["tokens", "real"]
"""Arguments of `neural.watch` with a value per position."""
DESCRIPTIONS: Mapping[PositionName, str] = {
    "tokens": "token ids: whole numbers",
    "real": "True or False for each position",
}


def check_model(model: Any) -> None:
    """TypeError if this is no torch module."""
    if isinstance(model, nn.Module):
        return
    if isinstance(model, type):
        advice = f"`{model.__name__}` is a class: create an instance, such as {model.__name__}()"
    elif isinstance(model, str):
        advice = f"{model!r} is a text: load the model first, and pass the model itself"
    elif callable(getattr(model, "build", None)):
        advice = f"a {type(model).__name__} has no weights yet: pass what its `build()` returns"
    else:
        advice = f"this is a {type(model).__name__}"
    raise TypeError(f"watch: the model must be a torch.nn.Module; {advice}")


def convert_positions(name: PositionName, values: Any) -> Tensor | None:
    """`tokens` or `real` as a tensor (B, T), also from nested lists or an array; None for None.

    ValueError if they have other types, another number of axes, or rows of different lengths.
    """
    if values is None:
        return None
    try:
        if isinstance(values, str):
            raise TypeError
        if isinstance(values, list | tuple):  # its rows may be arrays or tensors
            values = [row.tolist() if hasattr(row, "tolist") else row for row in values]
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name} must be a tensor (B, T), or a list of equally long lists, of "
            f"{DESCRIPTIONS[name]}"
        ) from None
    if tensor.ndim != 2:
        with_batch = f"{name}[None]" if hasattr(values, "shape") else f"[{name}]"
        advice = f": add a batch axis, {with_batch}" if tensor.ndim == 1 else ""
        raise ValueError(
            f"{name} must have the shape (B, T), examples × positions, not {tuple(tensor.shape)}"
            f"{advice}"
        )
    if tensor.is_floating_point() or tensor.is_complex():
        raise ValueError(f"{name} must be {DESCRIPTIONS[name]}, not {tensor.dtype}")
    return tensor


def check_positions(
    name: PositionName, values: Tensor | None, calls: Iterable[CapturedCall]
) -> None:
    """ValueError if no captured attention has as many examples and positions as `values`."""
    attention = {call.path: call.attention for call in calls if call.attention is not None}
    shapes = {
        path: (call.batch, call.positions if name == "tokens" else call.queries)
        for path, call in attention.items()
    }
    if values is None or not shapes or tuple(values.shape) in shapes.values():
        return
    path, expected = next(iter(shapes.items()))
    raise ValueError(
        f"{name} has the shape {tuple(values.shape)}, but the attention has {expected[0]} × "
        f"{expected[1]} positions (`{path}`): give one value per example and position"
    )


def explain_input_error(inputs: Any) -> str:
    """What to pass instead, for inputs on which the model failed; empty if they look right."""
    first = inputs[0] if isinstance(inputs, tuple) and inputs else inputs
    if isinstance(first, str):
        return (
            "a text is no tensor: tokenize it, and pass the ids with a batch axis, or pass "
            "`tokenizer`"
        )
    if isinstance(first, list | int | float):
        return "lists hold several inputs: pass one tensor, torch.tensor(x)"
    if type(first).__module__ == "numpy":
        return "the input is a NumPy array: pass a tensor, torch.from_numpy(x)"
    is_ids = isinstance(first, torch.Tensor) and not first.is_floating_point()
    return (
        "these ids have one axis: add a batch axis, x[None]" if is_ids and first.ndim == 1 else ""
    )

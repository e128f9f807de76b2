"""Find the outputs of the heads inside attention functions, and put edited ones in their place.

`EDIT_FUNCTIONS` has, for each `record_…` function (attention_functions.py), a function that calls
the torch function with `recorder.edit_output` applied to what the heads write, before the output
projection. Edits run with the caller's gradient mode, so interventions can be differentiated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural.capture import attention_functions
from neural.capture.recorder import Recorder
from neural.capture.softmax_calls import Product, SoftmaxCall
from neural.capture.threads import substitute
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def edit_sdpa(recorder: Recorder, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`scaled_dot_product_attention`, whose output is (…, H, Q, D)."""
    output = function(*args, **kwargs)
    value = args[2] if len(args) > 2 else kwargs["value"]
    if output.is_nested:
        recorder.refuse("its tensors are nested: heads of padded batches can be changed")
        return output
    with torch._C.DisableTorchFunction():
        heads = attention_functions.to_four_axes(output)
        edited = recorder.edit_output(heads, lambda: attention_functions.to_four_axes(value))
        return output if edited is heads else edited.reshape(output.shape)


def edit_attend(
    recorder: Recorder,
    function: Callable[..., Any],
    mechanism: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *rest: Any,
) -> Tensor:
    """`neural.attend`, whose output is (B, H, Q, V)."""
    output = function(mechanism, q, k, v, *rest)
    with torch._C.DisableTorchFunction():
        return recorder.edit_output(output, lambda: v)


def edit_flex_attention(
    recorder: Recorder,
    function: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *rest: Any,
    **kwargs: Any,
) -> Any:
    """`flex_attention`, whose first result is the output (B, H, Q, D)."""
    result = function(query, key, value, *rest, **kwargs)
    with torch._C.DisableTorchFunction():
        edited = recorder.edit_output(result[0], lambda: value)
    return result if edited is result[0] else type(result)((edited, *result[1:]))


def edit_multi_head_attention(
    recorder: Recorder, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """`multi_head_attention_forward`, which applies the output projection itself.

    The input of that projection, (Q · B, H · D), is the output of the heads. So the function
    `linear` that it calls is substituted while it runs.
    """
    bound = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
    bound.apply_defaults()
    options = bound.arguments
    heads, projection = options["num_heads"], options["out_proj_weight"]
    batch = options["query"].shape[1] if options["query"].ndim == 3 else 1

    def edit_projection_input(
        original: Callable[..., Any], x: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Float[Tensor, "N E"]:
        if weight is not projection:
            return original(x, weight, bias)
        # (Q · B, H · D) → (B, H, Q, D)
        head_outputs = x.reshape(-1, batch, heads, x.shape[-1] // heads).permute(1, 2, 0, 3)
        edited = recorder.edit_output(head_outputs, lambda: _project_values(options))
        if edited is not head_outputs:
            x = edited.permute(2, 0, 1, 3).reshape(x.shape)
        return original(x, weight, bias)

    with substitute(import_module(functional.__name__), "linear", edit_projection_input):
        return function(*args, **kwargs)


def _project_values(options: dict[str, Any]) -> Float[Tensor, "B H K D"]:
    """Values of `multi_head_attention_forward`, which projects them inside."""
    heads, value = options["num_heads"], options["value"]
    if options["static_v"] is not None:
        values = options["static_v"].unflatten(0, (-1, heads))
    else:
        value = value.unsqueeze(1) if value.ndim == 2 else value
        bias = options["in_proj_bias"]
        weight = options["v_proj_weight"]
        if not options["use_separate_proj_weight"]:
            weight = options["in_proj_weight"].chunk(3)[2]
        projected = functional.linear(value, weight, None if bias is None else bias.chunk(3)[2])
        if options["bias_v"] is not None:
            projected = torch.cat((projected, options["bias_v"].repeat(1, projected.shape[1], 1)))
        values = projected.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
    return functional.pad(values, (0, 0, 0, 1)) if options["add_zero_attn"] else values


EDIT_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    attention_functions.record_sdpa: edit_sdpa,
    attention_functions.record_attend: edit_attend,
    attention_functions.record_flex_attention: edit_flex_attention,
    attention_functions.record_multi_head_attention: edit_multi_head_attention,
}


def edit_product(recorder: Recorder, call: SoftmaxCall, result: Tensor, heads: int) -> Tensor:
    """Edit the product of softmax weights and values; `result` is in the product's own layout."""
    product = call.product
    if not recorder.has_edits or product is None:
        return result
    with torch._C.DisableTorchFunction():
        axes = _find_output_axes(product, result)
        if axes is None:
            recorder.refuse(f"the axes of its product `{product.args[0]}` are not known")
            return result
        ordered = result.permute(axes)
        is_folded = ordered.ndim == 3
        # (B · H, Q, D), or (B, Q, D) of one head
        outputs = ordered.unflatten(0, (-1, heads)) if is_folded else ordered
        edited = recorder.edit_output(outputs, lambda: _order_values(product, heads), call.path)
        if edited is outputs:
            return result
        edited = edited.flatten(0, 1) if is_folded else edited
        inverse = [axes.index(axis) for axis in range(len(axes))]
        return edited.permute(inverse)


def _find_output_axes(product: Product, result: Tensor) -> list[int] | None:
    """The order of the result's axes that gives (…, Q, D); None if it is not known."""
    axes = list(range(result.ndim))
    if product.name != "einsum":
        # values @ transposed weights is (…, D, Q)
        return [*axes[:-2], axes[-1], axes[-2]] if product.is_transposed else axes
    terms, output = _parse_einsum(product)
    weights = terms[product.operand]
    queries = weights[-1] if product.is_transposed else weights[-2]
    width = set(output) - set(weights)
    if len(width) != 1 or any(letter not in output for letter in weights[:-2]):
        return None
    order = [*weights[:-2], queries, width.pop()]
    return [output.index(letter) for letter in order]


def _order_values(product: Product, heads: int) -> Float[Tensor, "B G K D"]:
    """The values as (B, G, K, D)."""
    values = product.values
    if product.name == "einsum":
        terms, output = _parse_einsum(product)
        weights, letters = terms[product.operand], terms[1 - product.operand]
        keys = weights[-2] if product.is_transposed else weights[-1]
        width = next(letter for letter in letters if letter in output and letter not in weights)
        leading = [letter for letter in weights[:-2] if letter in letters]
        values = values.permute([letters.index(letter) for letter in (*leading, keys, width)])
        for axis, letter in enumerate(weights[:-2]):
            if letter not in letters:  # shared by this axis
                values = values.unsqueeze(axis)
    elif product.is_transposed:
        values = values.transpose(-1, -2)
    return values.unflatten(0, (-1, heads)) if values.ndim == 3 else values


def _parse_einsum(product: Product) -> tuple[list[str], str]:
    """Letters of the operands and of the output."""
    terms, _, output = product.args[0].replace(" ", "").partition("->")
    return terms.split(","), output

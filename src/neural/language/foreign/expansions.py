"""Layers of other libraries that are several layers here.

`TokenAndPositionEmbedding(…)` is an `Embedding` and a `PositionalEncoding`; `GlobalMaxPooling1D()`
is a `MaxPooling1D` over the whole length, for which the shape before it is inferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from neural.core.diagnostics import DiagnosticCollector
from neural.language.binder import Binder
from neural.language.catalogue import Catalogue
from neural.language.declaration import ArgumentSpec
from neural.language.foreign.argument_names import (
    ARGUMENTS,
    COPIES,
    IGNORED_ARGUMENTS,
    INFERRED_ARGUMENTS,
)
from neural.language.foreign.arguments import convert_argument
from neural.language.foreign.calls import CallTranslator, add_argument, find_entry
from neural.language.foreign.names import COMPOUNDS, POOLINGS
from neural.language.shapes import Shape, ShapeError
from neural.language.syntax import (
    Argument,
    CallExpression,
    LayerStatement,
    Literal,
    SequenceLiteral,
    Value,
    to_python,
)

AXES_CODES = ("E0302", "E0305")
"""Codes of errors about the number of axes."""

# --- compounds ------------------------------------------------------------------------------------


def expand_compound(
    statement: LayerStatement, calls: CallTranslator
) -> tuple[list[LayerStatement], list[str]]:
    """The layers that a compound of another library stands for, and what is lost."""
    call = statement.call
    compound = COMPOUNDS[call.name.rpartition(".")[2]]
    arguments = [
        replace(argument, name=compound.order[index])
        if argument.name is None and index < len(compound.order)
        else argument
        for index, argument in enumerate(call.arguments)
    ]
    results: list[LayerStatement] = []
    used: set[str | None] = set()
    for part in compound.parts:
        entry = find_entry(part.name, calls.catalogue.layers)
        if entry is None:
            continue
        specs = entry.argument_specs()
        own = [item for item in arguments if _takes(item, specs, arguments)]
        if part.is_optional and len(own) < sum(spec.is_required for spec in specs.values()):
            continue
        used |= {item.name for item in own}
        inner = CallExpression(
            name=f"{call.name}.{part.name}",  # not the name of a layer here: all is renamed
            name_span=call.name_span,
            arguments=tuple(own),
            span=call.span,
        )
        translated = calls.translate_call(inner)
        new_call = translated.call
        given = {item.name for item in new_call.arguments}
        for name, value in part.added.items():
            if name in given:
                continue
            new_call = add_argument(new_call, name, value, call.name_span)
        results.append(replace(statement, call=new_call, copies=translated.copies))
    notes: list[str] = []
    for argument in arguments:
        name = argument.name or ""
        if name in used or name in INFERRED_ARGUMENTS:
            continue
        if name in IGNORED_ARGUMENTS:
            notes.append(f"`{name}`: {IGNORED_ARGUMENTS[name]}")
        elif results:  # not known: the next check reports it
            first = results[0]
            given = replace(first.call, arguments=(*first.call.arguments, argument))
            results[0] = replace(first, call=given)
    return results, notes


def _takes(
    argument: Argument, specs: dict[str, ArgumentSpec], arguments: Iterable[Argument]
) -> bool:
    """Whether a layer with these arguments takes one of another library."""
    name = argument.name or ""
    targets = (name, *ARGUMENTS.get(name, ()))
    if COPIES in targets:
        return "num_heads" in specs
    return any(target in specs for target in targets) or (
        convert_argument(argument, specs, arguments) is not None
    )


def expand_patches(statement: LayerStatement) -> list[LayerStatement]:
    """A convolution that cuts an image into patches, and the sequence of them; [] if unclear."""
    call = statement.call
    sizes = {
        target: item.value.value
        for item in call.arguments
        if item.name is not None and isinstance(item.value, Literal)
        for target in (item.name, *ARGUMENTS.get(item.name, ()))
    }
    patch, width = sizes.get("patch_size"), sizes.get("d_model") or sizes.get("projection_dim")
    if not isinstance(patch, int) or not isinstance(width, int):
        return []
    convolution = _make_statement(statement, "Conv2D", str(width))
    new_call = add_argument(convolution.call, "kernel_size", patch, call.span)
    new_call = add_argument(new_call, "strides", patch, call.span)
    reshape = _make_statement(statement, "Reshape", f"(-1, {width})")
    return [replace(convolution, call=new_call), reshape]


# --- shapes ---------------------------------------------------------------------------------------


def read_shape(value: Value | None) -> Shape | None:
    """The shape that `input:` gives; None where it is wrong."""
    sizes = to_python(value) if isinstance(value, Literal | SequenceLiteral) else None
    sizes = sizes if isinstance(sizes, tuple | list) else (sizes,)
    shape: list[int | str] = []
    for index, size in enumerate(sizes):
        if size is None:
            shape.append("T" if index == 0 else f"T{index + 1}")
        elif isinstance(size, int | str) and not isinstance(size, bool):
            shape.append(size)
        else:
            return None
    return tuple(shape) if sizes != (None,) else ("T",)


def infer_shape(
    statements: Iterable[LayerStatement], shape: Shape | None, catalogue: Catalogue
) -> Shape | None:
    """The shape after some layers; None where one of them is wrong."""
    for statement in statements:
        binder = Binder(DiagnosticCollector())
        layer = binder.bind_call(statement.call, catalogue.layers).instance
        if shape is None or layer is None or binder.failure_count:
            return None
        copies = statement.copies.value if statement.copies else 1
        for _ in range(copies if isinstance(copies, int) else 1):
            try:
                following = layer.shape(shape)
            except ShapeError:
                return None
            if following == shape:
                break
            shape = following
    return shape


def has_extra_axis(statement: LayerStatement, shape: Shape, catalogue: Catalogue) -> bool:
    """Whether a layer refuses a shape for its number of axes, but takes it without the first."""
    layer = Binder(DiagnosticCollector()).bind_call(statement.call, catalogue.layers).instance
    if layer is None:
        return False
    try:
        layer.shape(shape)
    except ShapeError as error:
        rest = infer_shape([statement], shape[1:], catalogue)
        return error.code in AXES_CODES and rest is not None
    return False


def expand_pooling(
    statement: LayerStatement,
    before: list[LayerStatement],
    after: list[LayerStatement],
    input_shape: Value | None,
    catalogue: Catalogue,
) -> list[LayerStatement]:
    """Pooling over all positions with layers that exist here; empty if their number is not known.

    `before` and `after` are the layers around it.
    """
    kind = POOLINGS[statement.call.name.rpartition(".")[2]]
    output_size = [
        to_python(item.value)
        for item in statement.call.arguments
        if item.name in (None, "output_size")
    ]
    if output_size and output_size[0] not in (1, (1, 1), [1, 1], (1,)):
        return []
    shape = infer_shape(before, read_shape(input_shape), catalogue)
    axes = 1 if kind == "max1" else 2
    if shape is None or len(shape) != axes + 1 or not isinstance(shape[-1], int):
        return []
    sizes = shape[:-1]
    if kind != "mean2" and not all(isinstance(size, int) for size in sizes):
        return []
    if kind == "mean2":
        texts = {"Reshape": f"(-1, {shape[-1]})", "GlobalAveragePooling1D": ""}
    elif kind == "max1":
        texts = {"MaxPooling1D": f"{sizes[0]}", "Flatten": ""}
    else:
        texts = {"MaxPooling2D": f"({sizes[0]}, {sizes[1]})", "Flatten": ""}
    if after and after[0].call.name.rpartition(".")[2] == "Flatten":
        texts.pop("Flatten", None)
    return [_make_statement(statement, name, text) for name, text in texts.items()]


def _make_statement(statement: LayerStatement, name: str, text: str) -> LayerStatement:
    """A layer with one argument, written as `text`, in the place of a statement."""
    span = statement.call.span
    arguments: tuple[Argument, ...] = ()
    if text:
        sizes = [int(size) for size in text.strip("()").split(",")]
        items = tuple(
            Argument(name=None, value=Literal(value=size, text=str(size), span=span), span=span)
            for size in sizes
        )
        value: Value = items[0].value
        if text.startswith("("):
            value = SequenceLiteral(bracket="(", items=items, span=span)
        arguments = (Argument(name=None, value=value, span=span),)
    call = CallExpression(
        name=name, name_span=statement.call.name_span, arguments=arguments, span=span
    )
    return replace(statement, call=call, copies=None)

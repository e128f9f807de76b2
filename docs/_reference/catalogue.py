"""Reference of program entries: layers, attention, positions, losses, optimizers, schedules.

Everything is read from the declarations that the checker reads. Each entry has an example program,
built from its `example` instance; a test checks all of them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from neural.core.registry import Registry
from neural.language.argument_types import ChoiceType, EntryListType, EntryType
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.layer import Layer
from neural.language.loss import Loss
from neural.language.shapes import Shape, format_shape
from neural.nn.attention import registry as attention
from neural.nn.layers import registry as layers
from neural.nn.losses import registry as losses
from neural.nn.mechanism import Mechanism
from neural.nn.position import Position
from neural.nn.positions import registry as positions
from neural.optim.optimizers import registry as optimizers
from neural.optim.schedules import registry as schedules

from .markdown import docstring, fence, join_paragraphs, table

PAGES: dict[str, tuple[Registry[Any], str, str]] = {
    "layers": (
        layers,
        "Layers",
        "Calls below `layers:`. `B` is the batch size, which a program does not state. `E` is the "
        "number of input features, the last size. In the terminal: `neural layers NAME`.",
    ),
    "attention": (
        attention,
        "Attention mechanisms",
        'Values of `attention="…"` in transformer blocks and `MultiHeadAttention`. Arguments of a '
        "mechanism are written beside it. A mechanism is defined by its weights; a contract test "
        "checks that its fast implementation equals them ([more](../attention.md)).",
    ),
    "positions": (
        positions,
        "Positions",
        'Values of `positional="…"` in transformer blocks and of `encoding_type` in '
        "`PositionalEncoding`.",
    ),
    "losses": (
        losses,
        "Losses",
        "Values of `loss:`: a name in quotes, or a call with arguments.",
    ),
    "optimizers": (
        optimizers,
        "Optimizers",
        "Values of `optimizer:`, in a program or under `training` of an experiment.",
    ),
    "schedules": (
        schedules,
        "Schedules",
        "Values of an optimizer's `learning_rate`, in place of a number.",
    ),
}
SIGNATURE_WIDTH = 76
_PAGE_BY_PACKAGE = {registry.package: name for name, (registry, _, _) in PAGES.items()}


def pages() -> dict[str, str]:
    """One page per registry."""
    return {name: _format_page(*page) for name, page in PAGES.items()}


def _format_page(registry: Registry[Any], title: str, introduction: str) -> str:
    names = registry.names()
    overview = table(
        ["", ""], [[f"[`{name}`](#{name.lower()})", registry.get(name).summary()] for name in names]
    )
    sections = [join_paragraphs(*_format_section(registry, name)) for name in names]
    return join_paragraphs(f"# {title}", introduction, overview, *sections)


def _format_section(registry: Registry[Any], name: str) -> Iterator[str]:
    entry = registry.get(name)
    module_text = docstring(sys.modules[entry.__module__])
    yield f"## {name} {{ #{name.lower()} }}"
    yield docstring(entry)
    yield f"*{module_text}*" if "\n" not in module_text else module_text
    yield fence(_format_signature(entry, name), "neural")
    if specs := entry.argument_specs():
        yield table(
            ["argument", "takes", "default", ""],
            [_format_argument(spec) for spec in specs.values()],
        )
    if issubclass(entry, Layer):
        yield _format_layer_table(entry)
    if issubclass(entry, Mechanism):
        methods = {"weights": entry.weights, "computed by": entry.attend, "cost": entry.cost}
        yield table(["", ""], [[title, docstring(method)] for title, method in methods.items()])
    yield fence(example_program(entry, name), "neural")
    if issubclass(entry, Layer):
        layer, shape = entry.example()
        cost = layer.cost(shape)
        yield (
            f"{_format_shape(shape)} → {_format_shape(layer.shape(shape))}: "
            f"{cost.parameters:,} parameters, {cost.multiply_adds:,} multiply-adds, "
            f"{4 * cost.activations:,} bytes of activations saved for the backward pass."
        )


def _format_layer_table(entry: type[Layer]) -> str:
    """Output shape, cost and padding of a layer, from the docstrings of its methods."""
    layer, _ = entry.example()
    rows = [["output", docstring(entry.shape)], ["cost", docstring(entry.cost)]]
    if layer.uses_mask:
        rows.append(["padding", docstring(entry.uses_mask)])
    if layer.resizes_mask:
        rows.append(["mask", "Passed on, with one value for each position of the output."])
    elif not layer.keeps_time:
        rows.append(["mask", "Not passed on: the output has another time axis, or none."])
    return table(["", ""], rows)


def _format_signature(entry: type[Declaration], name: str) -> str:
    """The call with all arguments; required ones come first."""
    arguments = []
    for spec in entry.argument_specs().values():
        default = "" if spec.is_required else f"={format_value(spec.default)}"
        arguments.append("…" if isinstance(spec.kind, EntryListType) else spec.name + default)
    indent = " " * (len(name) + 1)
    call = f"{name}({', '.join(arguments)})"
    return textwrap.fill(call, SIGNATURE_WIDTH, subsequent_indent=indent, break_long_words=False)


def _format_argument(spec: ArgumentSpec) -> list[str]:
    if spec.is_required:
        default = "required"
    elif spec.default is None:
        default = ""
    else:
        default = f"`{format_value(spec.default)}`"
    aliases = f" Alias: `{'`, `'.join(spec.aliases)}`." if spec.aliases else ""
    takes = spec.kind.description
    if isinstance(spec.kind, ChoiceType):
        takes = ", ".join(f'`"{option}"`' for option in spec.kind.options)
    elif isinstance(spec.kind, EntryType | EntryListType):
        page = _PAGE_BY_PACKAGE.get(spec.kind.registry.package)
        takes = f"[{takes}]({page}.md)" if page else takes
    return [f"`{spec.name}`", takes, default, spec.doc + aliases]


def _format_shape(shape: Shape) -> str:
    return f"`{format_shape(shape, batch=True)}`"


def example_program(entry: type[Any], name: str) -> str:
    """A complete program with the entry's `example` instance."""
    example = entry.example()
    if issubclass(entry, Layer):
        layer, shape = example
        return _format_network(format_shape(shape), repr(layer))
    if issubclass(entry, Mechanism | Position):
        key = "attention" if issubclass(entry, Mechanism) else "positional"
        own_arguments = {
            argument: getattr(example, argument)
            for argument in entry.argument_specs()
            if getattr(example, argument) is not None
        }
        values = {"num_heads": 2, "d_model": 12, key: name, **own_arguments}
        call = ", ".join(f"{argument}={format_value(value)}" for argument, value in values.items())
        return _format_network("(16, 12)", f"TransformerEncoder({call})")
    if issubclass(entry, Loss):
        activations = sorted(entry.fused_activations)[:1]
        head = "".join(f", activation={format_value(activation)}" for activation in activations)
        return _format_network("(12,)", f"Output(5{head})", f"loss: {format_value(example)}")
    is_schedule = name in schedules.names()
    optimizer = f"AdamW(learning_rate={example!r})" if is_schedule else repr(example)
    return _format_network("(12,)", "Output(5)", 'loss: "mse"', f"optimizer: {optimizer}")


def _format_network(input_shape: str, layer: str, *sections: str) -> str:
    lines = [f"network Example {{\n  input: {input_shape}\n  layers:\n    {layer}"]
    lines += [""] if sections else []
    lines += [f"  {section}" for section in sections]
    return "\n".join([*lines, "}"])

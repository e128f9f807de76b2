"""Text of `neural layers`: all registry entries, or one with its arguments and an example.

A registry (neural.core.registry) is a folder of entries that programs use by name, such as layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neural.cli._formatting import format_table, style_heading
from neural.core.errors import NeuralError
from neural.core.names import find_closest
from neural.core.registry import Registry, UnknownNameError
from neural.language.argument_types import EntryType
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.layer import Layer
from neural.language.shapes import format_shape
from neural.nn.attention import registry as attention
from neural.nn.layers import registry as layers
from neural.nn.losses import registry as losses
from neural.nn.positions import registry as positions
from neural.optim.optimizers import registry as optimizers
from neural.optim.schedules import registry as schedules

REGISTRIES: dict[str, Registry[Any]] = {
    "layers": layers,
    'attention="…"': attention,
    'positional="…"': positions,
    'loss: "…"': losses,
    "optimizer: …": optimizers,
    "schedules (learning_rate=…)": schedules,
}
"""Registries by where a program uses their names; the keys are headings of the listing."""


def format_listing() -> str:
    """All entries, one line each."""
    lines = []
    for title, registry in REGISTRIES.items():
        rows = [(name, registry.get(name).summary()) for name in registry.names()]
        lines += [style_heading(title), *format_table(rows), ""]
    return "\n".join([*lines, "`neural layers NAME` shows arguments and an example."])


def describe_entry(name: str) -> str:
    """One entry: its documentation, its arguments, an example."""
    for registry in REGISTRIES.values():
        try:
            return "\n".join(_format_entry(registry.get(name, ignore_case=True), registry))
        except UnknownNameError:
            continue
    guess = find_closest(
        name, [known for registry in REGISTRIES.values() for known in registry.names()]
    )
    suggestion = f"did you mean `{guess}`?" if guess else "`neural layers` lists all"
    raise NeuralError(f"there is no entry `{name}`; {suggestion}")


def _format_entry(entry: type[Declaration], registry: Registry[Any]) -> Iterator[str]:
    yield f"{style_heading(registry.name_of(entry))}: {(entry.__doc__ or '').strip()}"
    if entry.argument_specs():
        yield ""
        yield style_heading("arguments")
        width = max(map(len, entry.argument_specs()))
        for argument in entry.argument_specs().values():
            yield from _format_argument(argument, width)
    if issubclass(entry, Layer):
        layer, input_shape = entry.example()
        shapes = (input_shape, layer.shape(input_shape))
        shapes_text = " → ".join(format_shape(shape, batch=True) for shape in shapes)
        yield ""
        yield style_heading("example")
        yield f"  {layer!r}"
        yield f"  {shapes_text}, {layer.cost(input_shape).parameters:,} parameters"


def _format_argument(argument: ArgumentSpec, width: int) -> Iterator[str]:
    """Lines about an argument; names are padded to `width`."""
    default = "required" if argument.is_required else f"default {format_value(argument.default)}"
    default = "optional" if argument.default is None else default
    aliases = f"; also `{'`, `'.join(argument.aliases)}`" if argument.aliases else ""
    yield f"  {argument.name.ljust(width)}  {argument.doc}"
    yield f"  {' ' * width}  {argument.kind.description}; {default}{aliases}"
    if isinstance(argument.kind, EntryType) and argument.kind.or_number is None:
        choices = ", ".join(f'"{name}"' for name in argument.kind.registry.names())
        yield f"  {' ' * width}  {choices}"

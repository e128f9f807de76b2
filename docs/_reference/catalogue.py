"""What a program can be made of: layers, attention, positions, losses, optimizers, schedules.

Everything is read from the declarations that the checker reads. Every entry comes with a program that contains it,
made from its own `tiny` instance; a test checks all of them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from neural.core.registry import Registry
from neural.language.declaration import Declared, Setting, spelt
from neural.language.kinds import Choice, Entry, Several
from neural.language.layer import Layer
from neural.language.loss import Loss
from neural.language.shapes import Shape, show
from neural.modules.attention import registry as attention
from neural.modules.layers import registry as layers
from neural.modules.losses import registry as losses
from neural.modules.mechanism import Mechanism
from neural.modules.position import Position
from neural.modules.positions import registry as positions
from neural.training.optimizers import registry as optimizers
from neural.training.schedules import registry as schedules

from .pieces import doc, fence, joined, table

PAGES: dict[str, tuple[Registry[Any], str, str]] = {
    "layers": (
        layers, "Layers",
        "What stands under `layers:`, one call after the other. `B` is the batch, which no program writes; `E` is the "
        "number of features that arrive, the last size. In the terminal: `neural layers NAME`.",
    ),
    "attention": (
        attention, "Attention mechanisms",
        'What `attention="…"` of a transformer block or of `MultiHeadAttention` can be; arguments of a mechanism stand '
        "beside it. Each is defined by its weights, and a test holds that the fast way it runs equals them "
        "([more](../attention.md)).",
    ),
    "positions": (
        positions, "Positions",
        'What `positional="…"` of a transformer block or `encoding_type` of `PositionalEncoding` can be.',
    ),
    "losses": (losses, "Losses", "What stands after `loss:`: a name in quotes, or a call where something is set."),
    "optimizers": (
        optimizers, "Optimizers",
        "What stands after `optimizer:`, in a program or under `training` of an experiment.",
    ),
    "schedules": (
        schedules, "Schedules", "What may stand in place of a number as the `learning_rate` of an optimizer.",
    ),
}  # fmt: skip
WIDTH = 76
_PAGE_OF = {registry.package: name for name, (registry, _, _) in PAGES.items()}


def pages() -> dict[str, str]:
    """One page per registry."""
    return {name: _page(*about) for name, about in PAGES.items()}


def _page(registry: Registry[Any], title: str, lead: str) -> str:
    names = registry.names()
    overview = table(["", ""], [[f"[`{name}`](#{name.lower()})", registry.get(name).summary()] for name in names])
    return joined(f"# {title}", lead, overview, *(joined(*_section(registry, name)) for name in names))


def _section(registry: Registry[Any], name: str) -> Iterator[str]:
    entry = registry.get(name)
    origin = doc(sys.modules[entry.__module__])
    yield f"## {name} {{ #{name.lower()} }}"
    yield doc(entry)
    yield f"*{origin}*" if "\n" not in origin else origin
    yield fence(_signature(entry, name), "neural")
    if entry.settings():
        yield table(["argument", "takes", "default", ""], [_row(one) for one in entry.settings().values()])
    if issubclass(entry, Layer):
        yield from _facts(entry)
    if issubclass(entry, Mechanism):
        facts = {"weights": entry.weights, "computed by": entry.mix, "cost": entry.cost}
        yield table(["", ""], [[title, doc(method)] for title, method in facts.items()])
    yield fence(program(entry, name), "neural")
    if issubclass(entry, Layer):
        layer, given = entry.tiny()
        cost = layer.cost(given)
        yield (
            f"{_shape(given)} → {_shape(layer.shape(given))}: {cost.parameters:,} parameters, "
            f"{cost.multiply_adds:,} multiply-adds, {4 * cost.activations:,} bytes kept until the backward pass."
        )


def _facts(entry: type[Layer]) -> Iterator[str]:
    """Shape, cost and padding in words, as the class says them."""
    layer, _ = entry.tiny()
    rows = [["output", doc(entry.shape)], ["cost", doc(entry.cost)]]
    if layer.uses_mask:
        rows.append(["padding", doc(entry.uses_mask)])
    if layer.maps_mask:
        rows.append(["after it", "The padding mask goes on, with one value for each position of the output."])
    elif not layer.keeps_time:
        rows.append(["after it", "The padding mask ends here: what comes out has another time axis, or none."])
    yield table(["", ""], rows)


def _signature(entry: type[Declared], name: str) -> str:
    """The call with everything that can be set; what has no default stands first."""
    parts = []
    for one in entry.settings().values():
        usual = "" if one.required else f"={spelt(one.default)}"
        parts.append("…" if isinstance(one.kind, Several) else one.name + usual)
    indent = " " * (len(name) + 1)
    return textwrap.fill(f"{name}({', '.join(parts)})", WIDTH, subsequent_indent=indent, break_long_words=False)


def _row(one: Setting) -> list[str]:
    default = "needed" if one.required else "" if one.default is None else f"`{spelt(one.default)}`"
    also = f" Also `{'`, `'.join(one.aliases)}`." if one.aliases else ""
    takes = one.kind.says
    if isinstance(one.kind, Choice):
        takes = ", ".join(f'`"{option}"`' for option in one.kind.options)
    elif isinstance(one.kind, Entry | Several) and one.kind.registry.package in _PAGE_OF:
        takes = f"[{takes}]({_PAGE_OF[one.kind.registry.package]}.md)"
    return [f"`{one.name}`", takes, default, one.doc + also]


def _shape(shape: Shape) -> str:
    return f"`{show(shape, batch=True)}`"


def program(entry: type[Any], name: str) -> str:
    """A whole program around the entry's own tiny instance."""
    made = entry.tiny()
    if issubclass(entry, Layer):
        layer, given = made
        return _network(show(given), repr(layer))
    if issubclass(entry, Mechanism | Position):
        key = "attention" if issubclass(entry, Mechanism) else "positional"
        own = {one: getattr(made, one) for one in entry.settings() if getattr(made, one) is not None}
        said = {"num_heads": 2, "d_model": 12, key: name, **own}
        return _network("(16, 12)", f"TransformerEncoder({', '.join(f'{one}={spelt(said[one])}' for one in said)})")
    if issubclass(entry, Loss):
        head = "".join(f", activation={spelt(one)}" for one in sorted(entry.fuses)[:1])
        return _network("(12,)", f"Output(5{head})", f"loss: {spelt(made)}")
    optimizer = f"AdamW(learning_rate={made!r})" if name in schedules.names() else repr(made)
    return _network("(12,)", "Output(5)", 'loss: "mse"', f"optimizer: {optimizer}")


def _network(given: str, layer: str, *sections: str) -> str:
    rest = "".join(f"  {section}\n" for section in sections)
    return f"network Example {{\n  input: {given}\n  layers:\n    {layer}\n" + ("\n" if rest else "") + rest + "}"

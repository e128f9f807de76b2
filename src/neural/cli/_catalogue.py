"""The catalogue in words: a line per entry, or one entry with its arguments and an example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from neural.cli._mistakes import Refused
from neural.core.names import closest
from neural.core.registry import Registry, UnknownName
from neural.language.declaration import Declared, Setting, spelt
from neural.language.kinds import Entry
from neural.language.layer import Layer
from neural.language.shapes import show
from neural.modules.attention import registry as attention
from neural.modules.layers import registry as layers
from neural.modules.losses import registry as losses
from neural.modules.positions import registry as positions
from neural.training.optimizers import registry as optimizers
from neural.training.schedules import registry as schedules

GROUPS: dict[str, Registry[Any]] = {
    "layers": layers,
    'attention="…"': attention,
    'positional="…"': positions,
    'loss: "…"': losses,
    "optimizer: …": optimizers,
    "schedules (learning_rate=…)": schedules,
}


def listing() -> str:
    """All entries, a line each."""
    lines = []
    for title, registry in GROUPS.items():
        lines.append(click.style(title, bold=True))
        names = registry.names()
        width = max(map(len, names))
        lines += [f"  {name.ljust(width)}  {registry.get(name).summary()}" for name in names]
        lines.append("")
    return "\n".join([*lines, "`neural layers NAME` shows arguments and an example."])


def describe(name: str) -> str:
    """One entry: what it is, its arguments, an example."""
    for registry in GROUPS.values():
        try:
            return "\n".join(_describe(registry.get(name, loosely=True), registry))
        except UnknownName:
            continue
    guess = closest(name, [known for registry in GROUPS.values() for known in registry.names()])
    way_out = f"did you mean `{guess}`?" if guess else "`neural layers` lists all"
    raise Refused(f"nothing is called `{name}`; {way_out}")


def _describe(entry: type[Declared], registry: Registry[Any]) -> Iterator[str]:
    yield f"{click.style(registry.spelt(entry), bold=True)}: {(entry.__doc__ or '').strip()}"
    if entry.settings():
        yield ""
        yield click.style("arguments", bold=True)
        width = max(map(len, entry.settings()))
        for one in entry.settings().values():
            yield from _setting(one, width)
    if issubclass(entry, Layer):
        layer, given = entry.tiny()
        cost = layer.cost(given)
        yield ""
        yield click.style("example", bold=True)
        yield f"  {layer!r}"
        yield f"  {show(given, batch=True)} → {show(layer.shape(given), batch=True)}, {cost.parameters:,} parameters"


def _setting(one: Setting, width: int) -> Iterator[str]:
    default = "needed" if one.required else f"default {spelt(one.default)}"
    default = "optional" if one.default is None else default
    also = f"; also `{'`, `'.join(one.aliases)}`" if one.aliases else ""
    yield f"  {one.name.ljust(width)}  {one.doc}"
    yield f"  {' ' * width}  {one.kind.says}; {default}{also}"
    if isinstance(one.kind, Entry) and one.kind.or_number is None:
        yield f"  {' ' * width}  {', '.join(chr(34) + name + chr(34) for name in one.kind.registry.names())}"

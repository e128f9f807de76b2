"""Declarations and places as an editor shows them: Markdown."""

from __future__ import annotations

from typing import Any

from neural.core.registry import Registry
from neural.language.declaration import Declared, Setting, spelt
from neural.language.network import Network, Placed
from neural.language.shapes import show
from neural.language.summary import memory, quantity, text_table
from neural.lsp.meaning import options

WIDEST = 88


def signature(declared: type[Declared], name: str) -> str:
    """`Dense(units, activation="linear", bias=true)`, over several lines where it is long."""
    parts = [one.name if one.required else f"{one.name}={spelt(one.default)}" for one in declared.settings().values()]
    flat = f"{name}({', '.join(parts)})"
    return flat if len(flat) <= WIDEST else "\n".join([f"{name}(", *(f"  {part}," for part in parts), ")"])


def of_entry(declared: type[Declared], registry: Registry[Any]) -> str:
    """An entry: its signature and what it is."""
    return f"{_code(signature(declared, registry.spelt(declared)))}\n{(declared.__doc__ or '').strip()}"


def of_setting(one: Setting, owner: str) -> str:
    """An argument: what it means, what it takes, what it is if nobody says it."""
    default = "needed" if one.required else "optional" if one.default is None else f"default `{spelt(one.default)}`"
    also = f"; also called {', '.join(f'`{name}`' for name in one.aliases)}" if one.aliases else ""
    known = ", ".join(f'`"{name}"`' for name in options(one))
    return "\n\n".join(
        text for text in (f"`{one.name}` of `{owner}`: {one.doc}", f"{one.kind.says}; {default}{also}", known) if text
    )


def of_place(placed: Placed, network: Network) -> str:
    """What a layer does to the shape at its place, and what it costs."""
    cost = placed.cost
    facts = [
        f"`{show(placed.given, batch=True)}` → `{show(placed.gives, batch=True)}`",
        f"{cost.parameters:,} parameters",
        f"{quantity(cost.multiply_adds)} multiply-adds",
        f"{memory(cost)} activations",
    ]
    if placed.copies > 1:
        facts.append(f"all {placed.copies} copies together")
    open_sizes = [f"{name} = {value:,}" for name, value in network.assumed.items()]
    return " · ".join(facts) + (f"  \ncosts for {', '.join(open_sizes)}" if open_sizes else "")


def of_network(network: Network) -> str:
    """The table of `neural check`."""
    return _code(text_table(network), "text")


def _code(text: str, language: str = "neural") -> str:
    return f"```{language}\n{text}\n```"

"""What notebooks show of a run, of watched attention and of a network, in place of one line of text.

    dress()      gives `_repr_html_` to those of these classes that are loaded; `import neural` does it in a notebook

Runs and attention are the page of `neural report` in a frame, which reaches nothing outside itself. The classes stay
as they are elsewhere, and know nothing of pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neural.language.summary import memory, quantity, remarks, rows
from neural.views.page import paragraph, table
from neural.views.report_page import embedded, page

if TYPE_CHECKING:
    from neural.blueprint import Blueprint
    from neural.tracking.run import Run
    from neural.tracking.seen import Seen

ROOM = 1_000_000
"""Bytes for the maps of a run: a notebook keeps every output."""


def dress() -> None:
    """Let notebooks show what is loaded."""
    for module, (name, html) in DRESSES.items():
        if module in sys.modules:
            getattr(sys.modules[module], name)._repr_html_ = html


def run_html(run: Run) -> str:
    """The whole report of a run."""
    from neural.report import page_data

    data = page_data([run], room=ROOM)
    return embedded(page(data, data["title"]), height=760)


def seen_html(seen: Seen) -> str:
    """Every head's map of the first example, and all measures."""
    from neural.report import looked
    from neural.tracking.measures import registry
    from neural.tracking.tracker import packed

    measures, between = seen.arrays(), seen.between()
    units = {name: registry.get(name).unit for name in (*measures, *between)}
    data = looked("attention", packed(seen), measures=measures, between=between, units=units)
    return embedded(page(data, "attention"), height=760)


def network_html(blueprint: Blueprint) -> str:
    """The table of layers, shapes and costs."""
    network = blueprint.network
    lines = [(row.layer, row.output, f"{row.cost.parameters:,}", quantity(row.cost.multiply_adds), memory(row.cost))
             for row in rows(network)]  # fmt: skip
    head = ("layer", "output", "parameters", "multiply-adds", "activations")
    told = [repr(blueprint).strip("<>"), *remarks(network)]
    return "\n".join([table(head, lines), *map(paragraph, told)])


DRESSES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "neural.tracking.run": ("Run", run_html), "neural.tracking.seen": ("Seen", seen_html),
    "neural.blueprint": ("Blueprint", network_html),
}  # fmt: skip
"""By module: a class of it, and how it is shown."""

"""HTML output of runs, captures and networks in notebooks.

`import neural` calls `register_html_reprs` in a notebook. Runs and captures (the attention of one
forward pass) are shown as the page of `neural report` in an iframe that loads nothing from outside.
The classes have no HTML methods of their own: `neural.report`, which renders, imports them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neural.capture.capture_result import Capture
from neural.core.html_document import render_paragraph, render_table
from neural.language.summary import (
    build_rows,
    format_activation_memory,
    format_quantity,
    iter_notes,
)
from neural.report.html_page import embed_in_iframe, render_page
from neural.runs.run import Run
from neural.workflows.load import Blueprint
from neural.workflows.watch import WatchResult

MAX_MAP_BYTES = 1_000_000
"""Size of a run's attention maps in its page; beyond it, maps are left out.

The limit is small because a notebook saves every output.
"""


def register_html_reprs() -> None:
    """Give runs, captures and networks a `_repr_html_` method."""
    for cls, render in HTML_REPRS.items():
        cls._repr_html_ = render  # type: ignore[attr-defined]


def render_run(run: Run) -> str:
    """The report of the run."""
    from neural.report.run_report import build_page_data

    data = build_page_data([run], max_map_bytes=MAX_MAP_BYTES)
    return embed_in_iframe(render_page(data, data["title"]), height=760)


def render_capture(capture: Capture) -> str:
    """The page of a capture: all heads of the first example, its tokens, measures and roles."""
    from neural.report.capture_page import build_capture_page_data

    name = capture.model_name if isinstance(capture, WatchResult) else "attention"
    data = build_capture_page_data(capture, name=name, max_map_bytes=MAX_MAP_BYTES)
    return embed_in_iframe(render_page(data, f"{name}: attention"), height=760)


def render_network(blueprint: Blueprint) -> str:
    """The table of layers, shapes and costs."""
    network = blueprint.network
    lines = [
        (
            row.layer,
            row.output,
            f"{row.cost.parameters:,}",
            format_quantity(row.cost.multiply_adds),
            format_activation_memory(row.cost),
        )
        for row in build_rows(network)
    ]
    header = ("layer", "output", "parameters", "multiply-adds", "activations")
    notes = [repr(blueprint).strip("<>"), *iter_notes(network)]
    return "\n".join([render_table(header, lines), *map(render_paragraph, notes)])


HTML_REPRS: dict[type, Callable[[Any], str]] = {
    Run: render_run,
    Capture: render_capture,
    Blueprint: render_network,
}
"""How an object of each class is shown."""

"""The attention view as a notebook widget, for runs and captures (`neural.watch`).

It is an anywidget, which works in Jupyter, VS Code, Colab and marimo without a network. The
selected step, layer, head and query are attributes of the widget: code can read, set and observe
them. Without the package `anywidget`, and where a notebook is opened without Python, the static
page is shown instead.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from neural.capture.capture_result import Capture
from neural.core.distribution import format_install_command
from neural.report.capture_page import build_capture_page_data
from neural.report.html_page import BUNDLE_DIR, embed_in_iframe, encode_json, render_page
from neural.report.run_report import build_page_data
from neural.runs.find import RunName, open_run
from neural.runs.run import Run
from neural.workflows.notebook import MAX_MAP_BYTES

INSTALL_HINT = (
    f"{format_install_command('notebook')} shows the interactive widget instead of this page"
)
SELECTION = ("step", "layer", "head", "query")
"""Attributes of a widget: what is selected. None until something is."""


def widget(
    source: RunName | Capture, *, max_map_bytes: int = MAX_MAP_BYTES, **selection: int | None
) -> Any:
    """The attention of a run or a capture as a widget.

        view = neural.widget("characters", layer=2, head=1)
        view                             # in the last line of a cell
        view.step = 120                  # moves the slider
        view.observe(print, names="head")

    `source` is a run, its name or path, or a capture of `neural.watch`. `selection` sets step,
    layer, head and query (a row of the map). `max_map_bytes` limits the size of the maps, because a
    notebook saves every output. Without the package `anywidget` the result is the static page.
    """
    unknown = [name for name in selection if name not in SELECTION]
    if unknown:
        raise TypeError(f"unknown selection `{unknown[0]}`; there are {', '.join(SELECTION)}")
    if isinstance(source, Capture):
        data = build_capture_page_data(source, max_map_bytes=max_map_bytes)
    elif isinstance(source, Run):
        data = build_page_data([source], max_map_bytes=max_map_bytes)
    else:
        with open_run(source) as run:
            data = build_page_data([run], max_map_bytes=max_map_bytes)
    if not any(run["map_steps"] for run in data["runs"]):
        raise ValueError(
            f"{data['title']} has no attention maps; set `tracking.maps_every` and train again"
        )
    try:
        widget_class = _define_widget_class()
    except ImportError:
        return StaticPage(data)
    return widget_class(data, **selection)


class StaticPage:
    """The page of a run or capture in an iframe, where widgets cannot be shown."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __repr__(self) -> str:
        return f"<page of {self._data['title']}; {INSTALL_HINT}>"

    def _repr_html_(self) -> str:
        return _render_static_page(self._data)


def _render_static_page(data: dict[str, Any]) -> str:
    return embed_in_iframe(render_page(data, data["title"]), height=760)


@cache
def _define_widget_class() -> type:
    """The widget class; defined here because its base class is in an optional package."""
    import anywidget
    import traitlets

    class AttentionWidget(anywidget.AnyWidget):
        """The attention view (web/src/widget.tsx). `data` is the page data as JSON."""

        _esm = (BUNDLE_DIR / "widget.js").read_text(encoding="utf-8")
        data = traitlets.Unicode().tag(sync=True)
        step = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)
        layer = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)
        head = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)
        query = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)

        def __init__(self, page_data: dict[str, Any], **selection: int | None) -> None:
            super().__init__(data=encode_json(page_data), **selection)
            self._page_data = page_data

        def __repr__(self) -> str:
            return f"<attention of {self._page_data['title']}>"

        def _repr_mimebundle_(self, **options: Any) -> Any:
            """The widget, and the static page for places that cannot show widgets."""
            bundle = super()._repr_mimebundle_(**options)
            is_pair = isinstance(bundle, tuple)  # (data, metadata)
            contents = bundle[0] if is_pair else bundle
            if contents is not None:
                contents["text/html"] = _render_static_page(self._page_data)
            return bundle

    return AttentionWidget

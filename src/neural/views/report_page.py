"""One HTML file that draws runs: the bundle of web/, its style and the data. It asks for nothing else, from anywhere.

    page(data, "handbook-tiny")           the whole file
    embedded(page(data, "a look"))        the same inside a notebook's cell
    board_page("runs")                    the page of the board, which gets its data from the server

Data stand in the page as JSON that no browser executes; the policy in its head lets this very script and style sheet
run and nothing else, no request to anywhere included.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

BUNDLE = Path(__file__).parent / "bundle"
"""The built sources of web/: neural.js and neural.css."""
ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""What could end a script or begin a tag; JSON reads it back."""


def page(data: dict[str, Any], title: str) -> str:
    """The whole file."""
    script, style = _bundled("neural.js"), _bundled("neural.css")
    policy = (
        f"default-src 'none'; script-src '{_sum(script)}'; style-src '{_sum(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    written = _json(data).translate(ESCAPED)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{_head(title)}
<style>{style}</style></head>
<body><div id="app"></div>
<noscript>This page draws its pictures with JavaScript, all of which is in the page.</noscript>
<script type="application/json" id="neural-data">{written}</script>
<script>{script}</script>
</body></html>
"""


def board_page(title: str) -> str:
    """Without data; script and style sheet from the server, below `bundle/`."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
{_head(title)}
<link rel="stylesheet" href="bundle/neural.css"></head>
<body><div id="app"></div>
<noscript>The board draws its pictures with JavaScript.</noscript>
<script src="bundle/neural.js" defer></script>
</body></html>
"""


def embedded(html: str, *, height: int = 640) -> str:
    """A page as a frame inside another one; it can run its script and reach nothing outside."""
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{escape(html)}" width="100%" height="{height}" '
        'style="border:0" loading="lazy"></iframe>'
    )


def _head(title: str) -> str:
    # an empty picture, so that no browser asks for one
    return f"""<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,"><title>{escape(title)}</title>"""


def _json(data: Any) -> str:
    written = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return written(data)
    except ValueError:   # infinity, which no browser can read; ours never say it, but a run may come from anybody
        return written(_finite(data))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(one) for key, one in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(one) for one in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@cache
def _bundled(name: str) -> str:
    return (BUNDLE / name).read_text(encoding="utf-8")


def _sum(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

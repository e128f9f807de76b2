"""HTML pages around the bundle: the script and the style sheet that are built from web/.

A report is one file that makes no requests. The board is the local server that lists runs; its page
loads the bundle and fetches its data.

    render_page(data, "handbook-tiny")    a report: script, style sheet and data in one file
    embed_in_iframe(html)                 the same inside a notebook cell
    render_board_page("runs")             the page of the board, which fetches its data

Data are embedded as JSON, which no browser executes. The Content Security Policy of a report allows
exactly its own script and style sheet, by their hashes, and no requests.
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

BUNDLE_DIR = Path(__file__).parent / "bundle"
"""The built sources of web/: neural.js and neural.css."""
SCRIPT_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
"""Characters that could end a script element or start a tag, as JSON escapes."""

PLACEHOLDER = '<p class="muted loading" role="status">drawing…</p>'
"""Painted before the data are parsed and the script runs, which then replaces it."""


def render_page(data: dict[str, Any], title: str) -> str:
    """A report as one HTML file; `data` is the JSON data that run_report.py builds."""
    script, style = _read_bundle_file("neural.js"), _read_bundle_file("neural.css")
    policy = (
        f"default-src 'none'; script-src '{_csp_hash(script)}'; "
        f"style-src '{_csp_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    json_text = encode_json(data).translate(SCRIPT_ESCAPES)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{_render_head(title)}
<style>{style}</style></head>
<body><div id="app">{PLACEHOLDER}</div>
<noscript>This page needs JavaScript; all of its code is in the page.</noscript>
<script type="application/json" id="neural-data">{json_text}</script>
<script>{script}</script>
</body></html>
"""


def render_board_page(title: str) -> str:
    """The page of the board: no data; script and style sheet are loaded from `bundle/`."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
{_render_head(title)}
<link rel="stylesheet" href="bundle/neural.css"></head>
<body><div id="app">{PLACEHOLDER}</div>
<noscript>The board needs JavaScript.</noscript>
<script src="bundle/neural.js" defer></script>
</body></html>
"""


def embed_in_iframe(html: str, *, height: int = 640) -> str:
    """A page in a sandboxed iframe: its script runs but cannot access the page around it.

    Its pictures can be saved as files.
    """
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(html)}" width="100%" '
        f'height="{height}" style="border:0" loading="lazy"></iframe>'
    )


def _render_head(title: str) -> str:
    # an empty icon, so that browsers do not request /favicon.ico
    return f"""<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,"><title>{escape(title)}</title>"""


def encode_json(data: Any) -> str:
    """Compact JSON; NaN and infinity become null."""
    dump = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return dump(data)
    except ValueError:  # NaN or infinity; rare, so they are searched only after this error
        return dump(_replace_non_finite(data))


def _replace_non_finite(data: Any) -> Any:
    """Replace NaN and infinity by None, because JSON lacks them."""
    if isinstance(data, dict):
        return {key: _replace_non_finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_replace_non_finite(item) for item in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@cache
def _read_bundle_file(name: str) -> str:
    return (BUNDLE_DIR / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    """Hash of an inline script or style for the Content Security Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

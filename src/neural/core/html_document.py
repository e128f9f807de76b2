"""Build a self-contained HTML page of tables, images and text, for light and dark screens.

render_document("Results", "Ten runs …", [render_section("Accuracy", render_table(header, rows))])
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
"""Types of the images that can be embedded, by suffix."""
PAGE_CSS = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe3e8; --paper: #fff; --card: #f6f7f9;
  --yes: #1a7f4b; --no: #b3401f; --undecided: #6b7280 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #2f3742; --paper: #14181d;
  --card: #1c2229; --yes: #4cc38a; --no: #f08a65; --undecided: #9aa5b4 }
  img { filter: invert(0.92) hue-rotate(180deg) } }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem }
h1 { font-size: 1.7rem; margin: 0 0 .3rem } h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem } p { margin: .4rem 0; max-width: 46rem } .soft { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .85rem }
th, td { padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td small { color: var(--soft) } .yes, .no, .undecided { font-weight: 600; white-space: nowrap }
.yes { color: var(--yes) } .no { color: var(--no) } .undecided { color: var(--undecided) }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem }
img { width: 100%; border-radius: 6px }
pre { background: var(--card); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace }
""".strip()


class Html(str):
    """Marks a string as HTML, which the functions of this file do not escape."""

    __slots__ = ()


CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No script and nothing from elsewhere, whatever a text contains."""


def render_document(title: str, lead: str, sections: Iterable[Html]) -> str:
    """A complete HTML file without external resources; `lead` is the paragraph below the title."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">
<title>{escape(title)}</title>
<style>
{PAGE_CSS}
</style></head><body>
<h1>{escape(title)}</h1>
<p class="soft">{escape_unless_html(lead)}</p>
{chr(10).join(sections)}
</body></html>
"""


def render_section(title: str, *children: Html, level: int = 2) -> Html:
    """Children under a heading; `level` 2 is `<h2>`."""
    return Html(f"<h{level}>{escape(title)}</h{level}>\n" + "\n".join(children))


def render_paragraph(text: str) -> Html:
    """A paragraph of text."""
    return Html(f"<p>{escape_unless_html(text)}</p>")


def render_preformatted(text: str) -> Html:
    """Text with its line breaks."""
    return Html(f"<pre>{escape_unless_html(text)}</pre>")


def render_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table; cells are text or `Html`."""
    header_cells = "".join(f"<th>{escape_unless_html(title)}</th>" for title in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape_unless_html(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return Html(f'<div class="wide"><table><tr>{header_cells}</tr>\n{body}\n</table></div>')


def render_verdict(verdict: str) -> Html:
    """The verdict of a study on a claim: `yes`, `no` or `undecided`, each in its colour."""
    return Html(f'<span class="{escape(verdict)}">{escape(verdict)}</span>')


def render_with_detail(text: str, detail: str) -> Html:
    """Two lines: the statement, and its source in small print."""
    return Html(f"{escape_unless_html(text)}<br><small>{escape_unless_html(detail)}</small>")


def render_images(files: Iterable[Path]) -> Html:
    """Images side by side, embedded as data URIs."""
    images = (f'<img alt="{escape(file.stem)}" src="{_data_uri(file)}">' for file in files)
    return Html(f'<div class="pictures">\n{chr(10).join(images)}\n</div>')


def escape_unless_html(text: str) -> str:
    """Escape text; leave `Html` as it is."""
    return text if isinstance(text, Html) else escape(text, quote=False)


def _data_uri(file: Path) -> str:
    return f"data:{MEDIA_TYPES[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"

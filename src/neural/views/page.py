"""Pieces of a page that is one file: tables, pictures, text, light or dark as the reader's screen is.

    page("evolution", "Ten trainings …", [part("handbook", table(("claim", "verdict"), rows), pictures(files))])
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
STYLE = """
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
    """Text that is markup already; anything else is escaped."""

    __slots__ = ()


def page(title: str, lead: str, parts: Iterable[Html]) -> str:
    """The whole file; it needs no other."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>
{STYLE}
</style></head><body>
<h1>{escape(title)}</h1>
<p class="soft">{html(lead)}</p>
{chr(10).join(parts)}
</body></html>
"""


def part(title: str, *inside: Html, level: int = 2) -> Html:
    """Under a heading."""
    return Html(f"<h{level}>{escape(title)}</h{level}>\n" + "\n".join(inside))


def paragraph(text: str) -> Html:
    """A sentence or several."""
    return Html(f"<p>{html(text)}</p>")


def block(text: str) -> Html:
    """As it is written, line by line."""
    return Html(f"<pre>{html(text)}</pre>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Cells are text, or markup where they say so."""
    first = "".join(f"<th>{html(one)}</th>" for one in head)
    body = "\n".join("<tr>" + "".join(f"<td>{html(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return Html(f'<div class="wide"><table><tr>{first}</tr>\n{body}\n</table></div>')


def verdict(word: str) -> Html:
    """yes, no or undecided, in its colour."""
    return Html(f'<span class="{escape(word)}">{escape(word)}</span>')


def with_small(text: str, small: str) -> Html:
    """Two lines: what matters, and below it how it is known."""
    return Html(f"{html(text)}<br><small>{html(small)}</small>")


def pictures(files: Iterable[Path]) -> Html:
    """Side by side, inside the page."""
    images = (f'<img alt="{escape(one.stem)}" src="{_inside(one)}">' for one in files)
    return Html(f'<div class="pictures">\n{chr(10).join(images)}\n</div>')


def html(text: str) -> str:
    """Escaped, unless it is markup."""
    return text if isinstance(text, Html) else escape(text, quote=False)


def _inside(file: Path) -> str:
    return f"data:{KINDS[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"

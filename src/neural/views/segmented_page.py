"""A text that was cut, as a page that is one file: the probability that a part begins is a curve in the margin.

The curve needs no script and no picture: every element draws the piece beside itself, from its own probability at its
top to the next one's at its bottom. So it stays beside the text at any width, and a book is a page that still opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from neural.views.page import Html, page, paragraph

SHORT = 40
"""Parts up to which the list of contents is open."""
STYLE = """
.text { --margin: 7rem; --at: calc(var(--threshold) * 1%); counter-reset: part }
.text section { content-visibility: auto; contain-intrinsic-size: auto 40rem }
.text header { display: flex; gap: .8rem; align-items: baseline; padding: .5rem 0 .5rem calc(var(--margin) + 1.2rem);
  position: relative; border-top: 1px solid var(--line) }
.text header b { font-size: 1.02rem; overflow-wrap: anywhere }
.text header small { color: var(--soft); white-space: nowrap }
.text header i { font-style: normal; font-weight: 600; color: var(--cut) }
.text p { position: relative; max-width: none; margin: 0; padding: .12rem 0 .12rem calc(var(--margin) + 1.2rem);
  overflow-wrap: anywhere; counter-reset: p var(--p) }
.text p::before, .text header[style]::before { content: ""; position: absolute; inset: 0 auto 0 0;
  width: var(--margin); background: linear-gradient(90deg, var(--fill) var(--at), var(--cut) var(--at));
  clip-path: polygon(0 0, max(1px, var(--p) * 1%) 0, max(1px, var(--q) * 1%) 100%, 0 100%) }
.text p::after { content: ""; position: absolute; top: 0; bottom: 0; left: calc(var(--margin) * var(--threshold) / 100);
  border-left: 1px dashed var(--line) }
.text p.n { padding-top: .8rem }
.text p:hover { background: var(--card) } .text p:hover::after { content: counter(p) "%"; color: var(--soft);
  font: 12px/1.6 system-ui, sans-serif; padding-left: .3rem }
ol.parts { padding-left: 2.6rem; margin: .4rem 0; max-width: 46rem; font-variant-numeric: tabular-nums }
ol.parts a { color: inherit; text-decoration: none; display: flex; gap: 1rem; justify-content: space-between;
  align-items: baseline; padding: .08rem 0; overflow-wrap: anywhere } ol.parts a:hover { background: var(--card) }
ol.parts small { color: var(--soft); white-space: nowrap } ol.parts small b { color: var(--cut) }
summary { cursor: pointer; color: var(--soft) } details { margin: 1rem 0 1.6rem }
:root { --fill: #b9c6d8; --cut: #c2571a }
@media (prefers-color-scheme: dark) { :root { --fill: #3b4a5e; --cut: #f0955a } }
@media (max-width: 40rem) { body { padding: 1.2rem .9rem 3rem } .text { --margin: 3rem }
  .text header { flex-direction: column; gap: 0 } .text p, .text header { padding-left: calc(var(--margin) + .7rem) } }
""".strip()


class Shown(NamedTuple):
    """A part as the page shows it."""

    title: str
    place: str
    """Where it stands, in words."""
    probability: float | None
    """That it begins here; None for the first."""
    elements: Sequence[str]


def segmented_page(
    name: str, lead: str, parts: Sequence[Shown], probabilities: np.ndarray, *, threshold: float,
    paragraphs: Iterable[int] = (), remarks: Iterable[str] = (),
) -> str:  # fmt: skip
    """The whole file. `probabilities` are of all elements in their order; `paragraphs` those that begin one."""
    percent = np.rint(np.asarray(probabilities) * 100).astype(int).tolist()
    contents = Html(
        f"<details{' open' * (len(parts) <= SHORT)}><summary>{len(parts):,} part{'s' * (len(parts) != 1)}</summary>"
        '<ol class="parts">' + "".join(_entry(number, one) for number, one in enumerate(parts, start=1))
        + "</ol></details>"
    )
    begin, first, shown = set(paragraphs), 0, []
    for number, one in enumerate(parts, start=1):
        shown.append(_section(number, one, percent, first, begin))
        first += len(one.elements)
    text = Html(f'<div class="text" style="--threshold:{threshold * 100:.3g}">\n{"".join(shown)}</div>')
    legend = paragraph(
        "In the margin: the probability that a part begins, from 0 at the left to 1 at the right; the dashed line is "
        f"the threshold, {threshold:.3g}."
    )
    return page(name, lead, [Html(f"<style>\n{STYLE}\n</style>"), *map(paragraph, remarks), legend, contents, text])


def _entry(number: int, part: Shown) -> str:
    sure = "" if part.probability is None else f" <b>{part.probability:.2f}</b>"
    return (
        f'<li><a href="#part-{number}"><span>{escape(part.title, quote=False)}</span>'
        f"<small>{escape(part.place)}{sure}</small></a></li>\n"
    )


def _section(number: int, part: Shown, percent: Sequence[int], first: int, begin: set[int]) -> str:
    sure = "" if part.probability is None else f"<i>{part.probability:.2f}</i> "
    beside = "" if part.probability is None else f' style="--p:{percent[first]};--q:{percent[first]}"'
    rows = [
        f'<p{" class=n" if at in begin and at > first else ""} style="--p:{percent[at]};--q:{_next(percent, at)}">'
        f"{escape(element, quote=False)}</p>\n"
        for at, element in enumerate(part.elements, start=first)
    ]
    return (
        f'<section id="part-{number}"><header{beside}><b>{number}. {escape(part.title, quote=False)}</b> '
        f"<small>{sure}{escape(part.place)}</small></header>\n{''.join(rows)}</section>\n"
    )


def _next(percent: Sequence[int], at: int) -> int:
    return percent[at + 1] if at + 1 < len(percent) else 0

"""A segmented text as one HTML file, with the curve of boundary probabilities in the margin.

An element is a sentence or line of the text; a segment is a sequence of elements. The probability
of an element is that of a segment boundary before it.

The curve needs no script and no image: the style sheet draws a trapezoid beside every element, from
its own probability at the top to the next one's at the bottom. So the curve stays beside the text
at any page width, and the page of a whole book still opens. Unlike the other reports, this page
does not use the script that is built from web/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from neural.core.html_document import Html, render_document, render_paragraph

MAX_OPEN_CONTENTS = 40
"""With more segments, the table of contents is collapsed at first."""
# --p and --q: probability of an element and of the next one, in percent; --threshold likewise
SEGMENTATION_CSS = """
.text { --margin: 7rem; --at: calc(var(--threshold) * 1%); }
.text section { content-visibility: auto; contain-intrinsic-size: auto 40rem }
.text header { display: flex; gap: .8rem; align-items: baseline;
  padding: .5rem 0 .5rem calc(var(--margin) + 1.2rem); position: relative;
  border-top: 1px solid var(--line) }
.text header b { font-size: 1.02rem; overflow-wrap: anywhere }
.text header small { color: var(--soft); white-space: nowrap }
.text header i { font-style: normal; font-weight: 600; color: var(--cut) }
.text p { position: relative; max-width: none; margin: 0;
  padding: .12rem 0 .12rem calc(var(--margin) + 1.2rem); overflow-wrap: anywhere;
  counter-reset: p var(--p) }
.text p::before, .text header[style]::before { content: ""; position: absolute; inset: 0 auto 0 0;
  width: var(--margin);
  background: linear-gradient(90deg, var(--fill) var(--at), var(--cut) var(--at));
  clip-path: polygon(0 0, max(1px, var(--p) * 1%) 0, max(1px, var(--q) * 1%) 100%, 0 100%) }
.text p::after { content: ""; position: absolute; top: 0; bottom: 0;
  left: calc(var(--margin) * var(--threshold) / 100); border-left: 1px dashed var(--line) }
.text p.n { padding-top: .8rem }
.text p.h { font-weight: 600 }
.text p.code { white-space: pre-wrap; font: 13px/1.5 ui-monospace, monospace }
.text.together { --threshold: 100 }
.text.together p::after { border: 0 }
.text.together header[style]::before { background: var(--cut) }
.text p:hover { background: var(--card) }
.text p:hover::after { content: counter(p) "%"; color: var(--soft);
  font: 12px/1.6 system-ui, sans-serif; padding-left: .3rem }
ol.segments { padding-left: 2.6rem; margin: .4rem 0; max-width: 46rem;
  font-variant-numeric: tabular-nums }
ol.segments a { color: inherit; text-decoration: none; display: flex; gap: 1rem;
  justify-content: space-between; align-items: baseline; padding: .08rem 0;
  overflow-wrap: anywhere }
ol.segments a:hover { background: var(--card) }
ol.segments small { color: var(--soft); white-space: nowrap }
ol.segments small b { color: var(--cut) }
summary { cursor: pointer; color: var(--soft) }
details { margin: 1rem 0 1.6rem }
:root { --fill: #b9c6d8; --cut: #c2571a }
@media (prefers-color-scheme: dark) { :root { --fill: #3b4a5e; --cut: #f0955a } }
@media (max-width: 40rem) { body { padding: 1.2rem .9rem 3rem } .text { --margin: 3rem }
  .text header { flex-direction: column; gap: 0 } .text p, .text header {
  padding-left: calc(var(--margin) + .7rem) } }
""".strip()


class SegmentView(NamedTuple):
    """A segment as the page shows it."""

    title: str
    position: str
    """Its range in the document, as text, such as "lines 1–20"."""
    probability: float | None
    """Probability of the boundary before it; None for the first segment."""
    elements: Sequence[str]
    """Texts of its elements."""
    first: int
    """Index of its first element in the document."""


def render_segmentation_page(
    name: str,
    lead: str,
    segments: Sequence[SegmentView],
    probabilities: np.ndarray,
    *,
    threshold: float | None,
    code: Iterable[int] = (),
    paragraph_starts: Iterable[int] = (),
    warnings: Iterable[str] = (),
) -> str:
    """Render the HTML file.

    `name` is its title, `lead` the paragraph below. `probabilities` are those of all elements, in
    order. `code` are indices of elements whose line breaks are kept, `paragraph_starts` of those
    that start a paragraph. From `threshold` on, a probability is a boundary; None if the boundaries
    were decided together.
    """
    percent = np.rint(np.asarray(probabilities) * 100).astype(int).tolist()
    contents = Html(
        f"<details{' open' * (len(segments) <= MAX_OPEN_CONTENTS)}>"
        f"<summary>{len(segments):,} segment{'s' * (len(segments) != 1)}</summary>"
        '<ol class="segments">'
        + "".join(
            _render_contents_entry(number, segment)
            for number, segment in enumerate(segments, start=1)
        )
        + "</ol></details>"
    )
    starts, code_elements = set(paragraph_starts), set(code)
    sections = [
        _render_segment(number, segment, percent, starts, code_elements)
        for number, segment in enumerate(segments, start=1)
    ]
    attributes = (
        'class="text together"'
        if threshold is None
        else f'class="text" style="--threshold:{threshold * 100:.3g}"'
    )
    text = Html(f"<div {attributes}>\n{''.join(sections)}</div>")
    legend = render_paragraph(
        "In the margin: the probability that a segment begins, from 0 at the left to 1 at the right"
        + (
            ". There is no threshold: the boundaries were chosen together, for the least expected "
            "Pk, the share of pairs of places, half a segment apart, that are wrongly taken to be in "
            "the same segment or in different ones."
            if threshold is None
            else f"; the dashed line is the threshold, {threshold:.3g}."
        )
    )
    return render_document(
        name,
        lead,
        [
            Html(f"<style>\n{SEGMENTATION_CSS}\n</style>"),
            *map(render_paragraph, warnings),
            legend,
            contents,
            text,
        ],
    )


def _render_contents_entry(number: int, segment: SegmentView) -> str:
    probability = "" if segment.probability is None else f" <b>{segment.probability:.2f}</b>"
    return (
        f'<li><a href="#segment-{number}"><span>{escape(segment.title, quote=False)}</span>'
        f"<small>{escape(segment.position)}{probability}</small></a></li>\n"
    )


def _render_segment(
    number: int,
    segment: SegmentView,
    percent: Sequence[int],
    paragraph_starts: set[int],
    code_elements: set[int],
) -> str:
    """HTML of one segment: a heading and a paragraph per element.

    The heading has no title if that would only repeat the first element. `percent` are the
    probabilities of all elements, in percent.
    """
    first = segment.first
    probability, style = "", ""
    if segment.probability is not None:
        probability = f"<i>{segment.probability:.2f}</i> "
        style = f' style="--p:{percent[first]};--q:{percent[first]}"'
    is_repeated = _is_first_element(segment)
    rows = []
    for index, element in enumerate(segment.elements, start=first):
        classes = "n" * (index in paragraph_starts and index > first)
        classes += "h" * (index == first and is_repeated and not _is_sentence(segment.title))
        classes += " code" * (index in code_elements)
        paragraph_class = f' class="{classes.strip()}"' if classes else ""
        next_percent = percent[index + 1] if index + 1 < len(percent) else 0
        rows.append(
            f'<p{paragraph_class} style="--p:{percent[index]};--q:{next_percent}">'
            f"{escape(element, quote=False)}</p>\n"
        )
    title = "" if is_repeated else f". {escape(segment.title, quote=False)}"
    return (
        f'<section id="segment-{number}"><header{style}><b>{number}{title}</b> '
        f"<small>{probability}{escape(segment.position)}</small></header>\n"
        f"{''.join(rows)}</section>\n"
    )


def _is_first_element(segment: SegmentView) -> bool:
    """Whether the title is the first element or, with an ellipsis, its beginning."""
    first_element = " ".join(segment.elements[0].split()) if segment.elements else ""
    if segment.title.endswith("…") and first_element != segment.title:
        return first_element.startswith(segment.title.removesuffix("…"))
    return first_element.strip("# ") == segment.title


def _is_sentence(title: str) -> bool:
    """Whether a title is a sentence or a part of one, not the heading of a section."""
    return title.endswith((".", "!", "?", "…", "。", "！", "？"))

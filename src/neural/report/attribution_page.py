"""Explanations of one prediction as one HTML page that opens offline.

render_attribution_page(result.to_dict())

Token strips need no script: the score of a token is the opacity of its background, blue where it
speaks for the answer and orange where it speaks against it. The figure (attribution_figure.py) is
embedded as SVG.
"""

from __future__ import annotations

from html import escape
from typing import Any

from neural.core.html_document import (
    Html,
    render_document,
    render_paragraph,
    render_section,
    render_table,
)
from neural.report.attribution_scores import find_unit, format_gain, scale_scores
from neural.report.token_text import format_token

MAX_SHOWN_PARTS = 24
"""Parts of the logit that are listed, the largest first; one row has the sum of the others."""
STRIP_CSS = """
.strip { line-height: 2.1; font: 14px/2.1 ui-monospace, monospace; overflow-wrap: anywhere;
  max-width: none }
.strip span { padding: .15rem .1rem; border-radius: 3px; white-space: pre-wrap }
.strip span.for { background: color-mix(in srgb, #2f7dc8 var(--s), transparent) }
.strip span.against { background: color-mix(in srgb, #d2691e var(--s), transparent) }
.strip span:hover { outline: 1px solid var(--ink) }
.number { color: var(--soft); font-variant-numeric: tabular-nums }
td { font-variant-numeric: tabular-nums }
figure { margin: 0; overflow-x: auto } figure svg { background: #fff; max-width: 100%; height: auto }
@media (max-width: 600px) { figure svg { min-width: 40rem } table { display: block; overflow-x: auto } }
@media screen and (prefers-color-scheme: dark) { figure svg { filter: invert(.92) hue-rotate(180deg) } }
"""


def render_attribution_page(data: dict[str, Any]) -> str:
    """The page of what `AttributionResult.to_dict()` returns."""
    answer = data["answer"]
    lead = f"{answer['text']}: {answer['logit']:.4f}. {data['source']}".replace("-", "−")
    if answer["probability"] is not None:
        lead = (
            f"Answer {format_token(answer['text'])!r} with probability {answer['probability']:.3f}; "
            f"the most probable is {format_token(data['predicted']['text'])!r} "
            f"({data['predicted']['probability']:.3f}). {data['source']}"
        )
    sections = [Html(f"<style>{STRIP_CSS}</style>")]
    sections += [render_paragraph(f"note: {note}") for note in data["notes"]]
    sections.append(_render_methods(data))
    sections.append(_render_figure(data))
    if data["logit_attribution"]:
        sections.append(_render_parts(data))
    if data["lens"]:
        sections.append(_render_lens(data))
    return render_document(f"{data['model']}: why this answer", lead, sections)


def _render_methods(data: dict[str, Any]) -> Html:
    """A strip of tokens per method, with its faithfulness number."""
    has_numbers = any(method["faithfulness"] for method in data["methods"].values())
    explanation = (
        f"Faithfulness: gain over random orders in {find_unit(data['answer'])}, mean of deletion "
        "and insertion, with its 95 % interval over the examples; 0 is what a random explanation "
        "has on average. Strips are scaled to their largest score; orange speaks against the answer."
        if has_numbers
        else "Faithfulness was not measured (--faithfulness): do not trust one strip alone."
    )
    children = [render_paragraph(explanation)]
    for name, method in data["methods"].items():
        scores = scale_scores(method["scores"])
        spans = "".join(
            f'<span class="{"against" if score < 0 else "for"}" '
            f'style="--s:{abs(score) * 100:.0f}%" '
            f'title="{position}: {value:.4g}">{escape(format_token(token, 24))}</span>'
            for position, (token, score, value) in enumerate(
                zip(data["tokens"], scores, method["scores"], strict=True)
            )
        )
        number = format_gain(method["faithfulness"])
        examples = (method["faithfulness"] or {}).get("examples")
        count = f"{examples} example{'s' * (examples != 1)}"
        number = f"faithfulness {number}, {count}" if number else "not measured"
        children.append(
            Html(
                f'<div data-method="{escape(name)}"><h3>{escape(method["label"])} '
                f'<small class="number">{escape(number)}</small></h3>'
                f'<p class="strip">{spans}</p></div>'
            )
        )
    return render_section("Source positions", *children)


def _render_figure(data: dict[str, Any]) -> Html:
    from neural.report.attribution_figure import draw_attribution

    svg = draw_attribution(data)._repr_svg_()
    svg = svg[svg.index("<svg") :]  # without the XML declaration
    return render_section("Figure", Html(f'<figure id="attribution-figure">{svg}</figure>'))


def _render_parts(data: dict[str, Any]) -> Html:
    """Direct logit attribution: the largest parts, and the sum of all."""
    attribution = data["logit_attribution"]
    parts = sorted(attribution["parts"], key=lambda part: -abs(part["value"]))
    removed = data["removed_heads"]
    rows = [
        (part["name"], part["kind"], _format(part["value"]), _find_effect(part["name"], removed))
        for part in parts[:MAX_SHOWN_PARTS]
    ]
    hidden = parts[MAX_SHOWN_PARTS:]
    if hidden:
        total = sum(part["value"] for part in hidden)
        rows.append((f"{len(hidden)} other parts", "", _format(total), ""))
    rows.append(("sum", "", _format(attribution["sum"]), ""))
    kind = "difference of the logits" if data["against"] else "logit"
    text = (
        f"The parts sum to the {kind}, {attribution['logit']:.4f}: every term that the model adds "
        "to its residual stream, heads through the output projection, with the scale of the final "
        "norm of this run. “If removed” is the fall of the same number when the head's output is "
        "zeroed; it includes what later layers do."
    )
    if attribution["agreement"] is not None:
        text += (
            f" Over the heads, both correlate with {attribution['agreement']:.2f}: that is the "
            "faithfulness of this table."
        )
    table = render_table(("part", "kind", "value", "if removed"), rows)
    return render_section("Direct logit attribution", render_paragraph(text), table)


def _render_lens(data: dict[str, Any]) -> Html:
    rows = [
        (
            row["layer"],
            f"{row['probability']:.4f}",
            str(row["rank"] + 1),
            ", ".join(
                f"{format_token(top['text'])} {top['probability']:.2f}" for top in row["top"]
            ),
        )
        for row in data["lens"]
    ]
    text = (
        "The residual stream after each layer, read by the final norm and the unembedding. It "
        "explains no source positions, so it has no faithfulness number."
    )
    table = render_table(("after", "probability of the answer", "rank", "most probable"), rows)
    return render_section("Logit lens", render_paragraph(text), table)


def _find_effect(name: str, removed: list[list[float | None]]) -> str:
    """The effect of removing the head `L1 h0`; empty for other parts."""
    layer, _, head = name.partition(" h")
    if not (layer[1:].isdecimal() and head.isdecimal()):
        return ""
    return _format(removed[int(layer[1:])][int(head)])


def _format(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}".replace("-", "−")

"""Result of `neural attribute`: scores of positions, parts of the logit, and which to trust."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural.capture.attribution import LogitAttribution
from neural.capture.faithfulness import ExampleFaithfulness
from neural.capture.logit_lens import LensRow
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table
from neural.data.text_encoding import VISIBLE_WHITESPACE
from neural.interpret.explanations import METHODS
from neural.stats.estimate import Estimate

MAX_SHOWN_TOKENS = 40
"""Source positions that are listed; of more, those with the highest scores."""
MAX_SHOWN_PARTS = 12
"""Parts of the logit that are listed, the largest first."""
SHORT_LABELS = {
    "attention": "attention",
    "attention_mean": "all layers",
    "value_weighted": "values",
    "rollout": "rollout",
    "gradient_attention": "grad×att",
    "gradient_rollout": "grad roll",
    "direct": "direct",
    "ablation": "ablation",
}
"""Headers of the columns of methods."""


@dataclass(frozen=True)
class Faithfulness:
    """How much better than random orders a method is, over the examples; nats, 0 is random."""

    gain: Estimate
    """Mean of both gains, with its 95 % interval; NaN ends with fewer than three examples."""
    deletion: Estimate
    insertion: Estimate
    here: float
    """The gain for the prediction that is shown."""

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        return {
            **self.gain.to_dict("examples"),
            "deletion": self.deletion.to_dict(),
            "insertion": self.insertion.to_dict(),
            "this_prediction": self.here,
        }


@dataclass(frozen=True)
class Answer:
    """A token or class with its probability, or a score."""

    id: int
    text: str
    probability: float
    """NaN of a score."""
    logit: float

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return vars(self)


@dataclass(frozen=True, repr=False)
class AttributionResult(Result):
    """Explanations of one prediction."""

    figure_suffixes: ClassVar = (".svg", ".pdf", ".png")

    model_name: str
    source: str
    """Where the weights come from."""
    tokens: list[str]
    """Texts of the source positions: the input up to the position, if attention is causal."""
    token_ids: list[int]
    position: int | None
    """Position whose prediction is explained; None for a class."""
    answer: Answer
    against: Answer | None
    """With it, the parts are those of the difference of the two logits."""
    predicted: Answer
    """The most probable answer."""
    scores: dict[str, np.ndarray]
    """Score of each source position, by method."""
    attribution: LogitAttribution | None
    """Direct logit attribution; None if the model does not allow it."""
    removed_heads: np.ndarray
    """[layer, head]: by how much the logit (or difference) falls if the head is zeroed."""
    head_agreement: float
    """Correlation over heads of the direct attribution and `removed_heads`; NaN if undefined."""
    lens: list[LensRow]
    lens_tokens: dict[int, str]
    head_rows: dict[str, list[np.ndarray]]
    """By method, "value_weighted" and "gradient_attention": (H, T) scores of each layer's heads."""
    faithfulness: dict[str, Faithfulness] = field(default_factory=dict)
    examples: list[ExampleFaithfulness] = field(default_factory=list)
    """Curves; the first are those of the prediction that is shown."""
    notes: list[str] = field(default_factory=list)

    @property
    def parts(self) -> dict[str, float]:
        """Parts of the logit by name; they sum to it."""
        if self.attribution is None:
            return {}
        return {part.name: float(part.values[0]) for part in self.attribution.parts}

    @property
    def head_parts(self) -> np.ndarray:
        """[layer, head]: direct attribution of each head; NaN where a layer has fewer heads."""
        layers = [] if self.attribution is None else self.attribution.heads
        heads = max((layer.shape[1] for layer in layers), default=0)
        values = np.full((len(layers), heads), np.nan)
        for index, layer in enumerate(layers):
            values[index, : layer.shape[1]] = layer[0].sum(-1)
        return values

    def build_dict(self) -> dict[str, Any]:
        """Everything: scores by method, parts of the logit, heads, layers, curves."""
        attribution = self.attribution
        return {
            "model": self.model_name,
            "source": self.source,
            "tokens": self.tokens,
            "token_ids": self.token_ids,
            "position": self.position,
            "answer": self.answer.to_dict(),
            "against": None if self.against is None else self.against.to_dict(),
            "predicted": self.predicted.to_dict(),
            "methods": {
                name: {
                    "label": METHODS[name],
                    "scores": values,
                    "faithfulness": self.faithfulness[name].to_dict()
                    if name in self.faithfulness
                    else None,
                }
                for name, values in self.scores.items()
            },
            "logit_attribution": None
            if attribution is None
            else {
                "logit": attribution.logits[0],
                "sum": attribution.total[0],
                "parts": [
                    {"name": part.name, "kind": part.kind, "value": part.values[0]}
                    for part in attribution.parts
                ],
                "heads": self.head_parts,
                "sources": [layer[0] for layer in attribution.heads],
                "agreement": self.head_agreement,
            },
            "removed_heads": self.removed_heads,
            "lens": [
                {
                    "layer": row.name,
                    "probability": row.probability,
                    "rank": row.rank,
                    "top": [
                        {"id": token, "text": self.lens_tokens[token], "probability": probability}
                        for token, probability in row.top
                    ],
                }
                for row in self.lens
            ],
            "head_rows": self.head_rows,
            "curves": self._curves_to_dict(),
            "notes": self.notes,
        }

    def _curves_to_dict(self) -> dict[str, Any] | None:
        """Deletion and insertion curves of the prediction that is shown."""
        if not self.examples:
            return None
        first = self.examples[0]
        random = {
            kind: np.mean([getattr(curves, kind) for curves in first.random], axis=0).tolist()
            for kind in ("deletion", "insertion")
        }
        return {
            "shares": first.shares.tolist(),
            "random": random,
            "methods": {
                name: {
                    "deletion": curves.deletion.tolist(),
                    "insertion": curves.insertion.tolist(),
                }
                for name, curves in first.curves.items()
            },
        }

    @property
    def tables(self) -> dict[str, Table]:
        """`positions`: token and scores by method. `heads`: part of the logit, effect if removed."""
        columns = (Column("position"), Column("token"), *map(Column, self.scores))
        rows = list(zip(range(len(self.tokens)), self.tokens, *self.scores.values(), strict=True))
        direct = self.head_parts
        heads = [
            (
                layer,
                head,
                float(direct[layer, head]) if direct.size else math.nan,
                float(self.removed_heads[layer, head]),
            )
            for layer, head in np.argwhere(np.isfinite(self.removed_heads)).tolist()
        ]
        head_columns = map(Column, ("layer", "head", "direct", "removed"))
        return {"positions": Table(columns, rows), "heads": Table(tuple(head_columns), heads)}

    def to_sections(self, width: int) -> list[PageSection]:
        """The answer, scores of positions, faithfulness, parts of the logit, logit lens."""
        sections = [self._describe_answer(), self._build_positions()]
        if self.faithfulness:
            sections.append(self._build_faithfulness())
        if self.attribution is not None:
            sections.append(self._build_parts(self.attribution))
        if self.lens:
            rows = [
                (
                    row.name,
                    f"{row.probability:.4f}",
                    str(row.rank + 1),
                    ", ".join(
                        f"{quote_token(self.lens_tokens[token])} {probability:.2f}"
                        for token, probability in row.top[:3]
                    ),
                )
                for row in self.lens
            ]
            head = ("after", "probability", "rank", "most probable")
            sections.append(PageSection(title="logit lens", table_head=head, table_rows=rows))
        return sections

    def _describe_answer(self) -> PageSection:
        answer, predicted = self.answer, self.predicted
        where = "" if self.position is None else f" after position {self.position}"
        lines = [self.source] if self.source else []
        lines.append(
            f"answer{where}: {quote_token(answer.text)} with probability {answer.probability:.3f}"
            if math.isfinite(answer.probability)
            else f"{answer.text}: {answer.logit:.4f}".replace("-", "−")
        )
        if predicted.id != answer.id:
            token, probability = quote_token(predicted.text), predicted.probability
            lines.append(f"most probable: {token} with probability {probability:.3f}")
        lines += [f"note: {note}" for note in self.notes]
        return PageSection(title=self.model_name, text="\n".join(lines))

    def _build_positions(self) -> PageSection:
        """Tokens with the scores of all methods, each column scaled to its largest score."""
        scaled = {
            name: values / max(float(np.abs(values).max()), 1e-300)
            for name, values in self.scores.items()
        }
        shown = list(range(len(self.tokens)))
        lines = ["", "scores are shares of the largest of their column"]
        if len(shown) > MAX_SHOWN_TOKENS:
            importance = np.sum([np.abs(values) for values in scaled.values()], axis=0)
            shown = sorted(np.argsort(-importance)[:MAX_SHOWN_TOKENS].tolist())
            lines.append(f"the {len(shown)} positions with the highest scores")
        if not self.faithfulness:
            lines.append("--faithfulness measures which of these columns to trust")
        rows = [
            (
                str(position),
                quote_token(self.tokens[position]),
                *(_format_share(float(values[position])) for values in scaled.values()),
            )
            for position in shown
        ]
        return PageSection(
            title="source positions",
            text="\n".join(lines),
            table_head=("", "token", *(SHORT_LABELS[name] for name in scaled)),
            table_rows=rows,
        )

    def _build_faithfulness(self) -> PageSection:
        """The gain of each method over random orders, with its interval."""
        rows = []
        ordered = sorted(self.faithfulness.items(), key=lambda item: -item[1].gain.value)
        for name, number in ordered:
            gain, *parts = (
                estimate.format_value(signed=True)
                for estimate in (number.gain, number.deletion, number.insertion)
            )
            interval = number.gain.format_interval(signed=True)
            rows.append((METHODS[name], gain, interval, *parts))
        count = ordered[0][1].gain.n
        unit = "nats" if math.isfinite(self.answer.probability) else "units of the score"
        return PageSection(
            title="faithfulness",
            text=f"gain over random orders in {unit}, {count} prediction{'s' * (count != 1)}",
            table_head=("method", "faithfulness", "95 % interval", "deletion", "insertion"),
            table_rows=rows,
        )

    def _build_parts(self, attribution: LogitAttribution) -> PageSection:
        """The largest parts of the logit, the effect of removing heads, and the sum."""
        parts = sorted(attribution.parts, key=lambda part: -abs(float(part.values[0])))
        rows = []
        for part in parts[:MAX_SHOWN_PARTS]:
            effect = ""
            if part.kind == "head":
                layer, head = part.name[1:].split(" h")
                effect = _format_number(float(self.removed_heads[int(layer), int(head)]))
            rows.append((part.name, part.kind, _format_number(float(part.values[0])), effect))
        rest = parts[MAX_SHOWN_PARTS:]
        if rest:
            total = sum(float(part.values[0]) for part in rest)
            rows.append((f"{len(rest)} other parts", "", _format_number(total), ""))
        what = "logit" if self.against is None else "difference of the logits"
        lines = [
            "",
            f"all {len(parts)} parts sum to {attribution.total[0]:.4f}; "
            f"the {what} is {attribution.logits[0]:.4f}",
        ]
        if math.isfinite(self.head_agreement):
            lines.append(
                "faithfulness of this table: direct parts and effects of removing heads correlate "
                f"with {self.head_agreement:.2f}"
            )
        return PageSection(
            title="direct logit attribution",
            text="\n".join(lines),
            table_head=("part", "kind", "value", "if removed"),
            table_rows=rows,
        )

    def render_page(self) -> str:
        """Token strips, faithfulness, heads and layers on one page."""
        from neural.report.attribution_page import render_attribution_page

        return render_attribution_page(self.to_dict())

    def draw(self, path: Path) -> None:
        """The figure of heads, layers and the lens."""
        from neural.report.attribution_figure import draw_attribution  # imports matplotlib

        draw_attribution(self.to_dict()).save(path)


def quote_token(text: str) -> str:
    """A token with visible blanks, in quotes."""
    return "“" + "".join(VISIBLE_WHITESPACE.get(letter, letter) for letter in text) + "”"


def _format_share(value: float) -> str:
    return "·" if abs(value) < 0.005 else f"{value:.2f}".replace("-", "−")


def _format_number(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")

"""`neural attribute`: why a model gave one answer, and how far each explanation can be trusted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import SEED
from neural.cli._options import (
    build_option,
    ids_option,
    json_option,
    objective_option,
    out_option,
    runs_option,
)

if TYPE_CHECKING:
    from neural.workflows.attribute import AttributionResult

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


@click.command()
@click.argument("target", metavar="MODEL|RUN")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="TEXT|FILE",
    help="The text; of several, the first is explained, and all are examples of faithfulness. With "
    "--objective cosine the second is compared with the first.",
)
@ids_option()
@click.option(
    "--position",
    type=int,
    metavar="N",
    help="Explain the prediction after this position, from 0 or from the end (−1); the last by "
    "default. A class has its own position.",
)
@objective_option()
@click.option("--answer", metavar="TOKEN", help="Token or class; the most probable by default.")
@click.option(
    "--against",
    metavar="TOKEN",
    help="Split the difference to this token's logit into parts; positions are scored for the answer.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="attention, attention_mean, value_weighted, rollout, gradient_attention, "
    "gradient_rollout, direct, ablation; all by default.",
)
@click.option("--faithfulness", is_flag=True, help="Measure how faithful each method is.")
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Predictions on which faithfulness is measured.",
)
@click.option("--step", type=click.IntRange(0), help="Checkpoint of a run; the best by default.")
@build_option()
@click.option("--seed", type=SEED, default=0, show_default=True)
@out_option("Write a page or a figure.", metavar="FILE.html|FILE.svg")
@runs_option()
@json_option()
def command(target: str, root: Path, as_json: bool, **options: Any) -> None:
    """Explain one answer of a model: tokens, heads, layers, and which explanation to trust.

    \b
    $ neural attribute runs/characters --input "To be or not to b" --faithfulness
    $ neural attribute ./gpt2 --input "The cat sat on the" --answer " mat" -o why.html
    $ neural attribute ./gpt2 --input notes.txt --position 12 --method rollout --json

    The answer is the token after a position, or the class of a classifier. Every method gives each
    source position a score. Direct logit attribution splits the logit into parts of heads and MLPs
    that sum to it. The logit lens reads the prediction after every layer. --faithfulness replaces
    tokens in the order of each method and measures the answer's probability, against random orders.
    """
    _attribute(target, root, as_json=as_json, **options)


def _attribute(
    target: str,
    root: Path,
    *,
    inputs: tuple[str, ...],
    ids: tuple[str, ...],
    methods: tuple[str, ...],
    faithfulness: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    from neural.workflows.attribute import attribute
    from neural.workflows.watch_inputs import read_inputs
    from neural.workflows.watch_models import format_json

    if bool(inputs) == bool(ids):
        raise click.UsageError("give the input with --input TEXT, or with --ids NUMBERS")
    if out is not None and out.suffix.lower() not in (".html", ".htm", ".svg", ".pdf", ".png"):
        raise click.UsageError(
            f"{out}: a page is HTML and a figure SVG, PDF or PNG; name it "
            f"{out.with_suffix('.html')} or {out.with_suffix('.svg')}"
        )
    rows: list[Any] = list(read_inputs(inputs)) if inputs else [_parse_ids(row) for row in ids]

    def report_progress(done: int, total: int) -> None:
        if total > 1 and not as_json:
            click.echo(f"\rfaithfulness: {done} of {total} predictions", nl=False, err=True)
            click.echo("\n" if done == total else "", nl=False, err=True)

    result = attribute(
        target,
        rows,
        methods=methods or None,
        faithfulness=faithfulness,
        runs=root,
        on_progress=report_progress,
        **options,
    )
    if as_json:
        click.echo(format_json(result.to_dict()), nl=False)
    else:
        click.echo("\n".join(_format_result(result)))
    if out is not None:
        result.save(out)
        hint = "; open it in a browser" if out.suffix.lower() in (".html", ".htm") else ""
        click.echo(f"{out}{hint}", err=as_json)


def _parse_ids(row: str) -> list[int]:
    try:
        return [int(word) for word in row.replace(",", " ").split()]
    except ValueError:
        raise click.UsageError('--ids takes whole numbers, such as --ids "5 3 9"') from None


def _format_result(result: AttributionResult) -> list[str]:
    answer, predicted = result.answer, result.predicted
    where = "" if result.position is None else f" after position {result.position}"
    lines = [
        _formatting.style_heading(result.model_name) + (f", {result.source}" * bool(result.source)),
        f"  answer{where}: {_show(answer.text)} with probability {answer.probability:.3f}"
        if math.isfinite(answer.probability)
        else f"  {answer.text}: {answer.logit:.4f}".replace("-", "−"),
    ]
    if predicted.id != answer.id:
        lines.append(
            f"  most probable: {_show(predicted.text)} with probability {predicted.probability:.3f}"
        )
    lines += [f"  note: {note}" for note in result.notes]
    lines += ["", _formatting.style_heading("source positions"), *_format_tokens(result)]
    lines += _format_faithfulness(result)
    if result.attribution is not None:
        lines += ["", _formatting.style_heading("direct logit attribution"), *_format_parts(result)]
    if result.lens:
        lines += ["", _formatting.style_heading("logit lens"), *_format_lens(result)]
    return lines


def _format_tokens(result: AttributionResult) -> list[str]:
    """Tokens with the scores of all methods, each column scaled to its largest score."""
    import numpy as np

    scaled = {
        name: values / max(float(np.abs(values).max()), 1e-300)
        for name, values in result.scores.items()
    }
    shown = list(range(len(result.tokens)))
    if len(shown) > MAX_SHOWN_TOKENS:
        importance = np.sum([np.abs(values) for values in scaled.values()], axis=0)
        shown = sorted(np.argsort(-importance)[:MAX_SHOWN_TOKENS].tolist())
    rows = [("", "token", *(SHORT_LABELS[name] for name in scaled))]
    for position in shown:
        cells = [_format_share(float(values[position])) for values in scaled.values()]
        rows.append((str(position), _show(result.tokens[position]), *cells))
    lines = _formatting.format_table(rows, right_aligned=(0, *range(2, len(rows[0]))))
    if len(shown) < len(result.tokens):
        lines.append(f"  the {len(shown)} positions with the highest scores")
    return [*lines, "  scores are shares of the largest of their column"]


def _format_faithfulness(result: AttributionResult) -> list[str]:
    """The gain of each method over random orders, with its interval."""
    from neural.capture.explanations import METHODS

    if not result.faithfulness:
        return ["  --faithfulness measures which of these columns to trust"]
    rows = [("method", "faithfulness", "95 % interval", "deletion", "insertion")]
    ordered = sorted(result.faithfulness.items(), key=lambda item: -item[1].gain.value)
    for name, number in ordered:
        gain = number.gain
        interval = f"{gain.low:+.2f} … {gain.high:+.2f}" if math.isfinite(gain.low) else "–"
        rows.append(
            (
                METHODS[name],
                _format_number(gain.value),
                interval.replace("-", "−"),
                _format_number(number.deletion.value),
                _format_number(number.insertion.value),
            )
        )
    count = ordered[0][1].gain.seeds
    unit = "nats" if math.isfinite(result.answer.probability) else "units of the score"
    return [
        "",
        _formatting.style_heading("faithfulness")
        + f"  gain over random orders in {unit}, {_formatting.format_count(count, 'prediction')}",
        *_formatting.format_table(rows, right_aligned=(1, 2, 3, 4)),
    ]


def _format_parts(result: AttributionResult) -> list[str]:
    """The largest parts of the logit, the effect of removing heads, and the sum."""
    attribution = result.attribution
    assert attribution is not None
    parts = sorted(attribution.parts, key=lambda part: -abs(float(part.values[0])))
    rows = [("part", "kind", "value", "if removed")]
    for part in parts[:MAX_SHOWN_PARTS]:
        effect = ""
        if part.kind == "head":
            layer, head = part.name[1:].split(" h")
            effect = _format_number(float(result.removed_heads[int(layer), int(head)]))
        rows.append((part.name, part.kind, _format_number(float(part.values[0])), effect))
    rest = parts[MAX_SHOWN_PARTS:]
    if rest:
        total = sum(float(part.values[0]) for part in rest)
        rows.append((f"{len(rest)} other parts", "", _format_number(total), ""))
    what = "logit" if result.against is None else "difference of the logits"
    lines = _formatting.format_table(rows, right_aligned=(2, 3))
    lines.append(
        f"  all {len(parts)} parts sum to {attribution.total[0]:.4f}; "
        f"the {what} is {attribution.logits[0]:.4f}"
    )
    if math.isfinite(result.head_agreement):
        lines.append(
            "  faithfulness of this table: direct parts and effects of removing heads correlate "
            f"with {result.head_agreement:.2f}"
        )
    return lines


def _format_lens(result: AttributionResult) -> list[str]:
    rows = [("after", "probability", "rank", "most probable")]
    for row in result.lens:
        tops = ", ".join(
            f"{_show(result.lens_tokens[token])} {probability:.2f}"
            for token, probability in row.top[:3]
        )
        rows.append((row.name, f"{row.probability:.4f}", str(row.rank + 1), tops))
    return _formatting.format_table(rows, right_aligned=(1, 2))


def _show(text: str) -> str:
    """A token with visible blanks, in quotes."""
    from neural.data.text_encoding import VISIBLE_WHITESPACE

    return "“" + "".join(VISIBLE_WHITESPACE.get(letter, letter) for letter in text) + "”"


def _format_share(value: float) -> str:
    return "·" if abs(value) < 0.005 else f"{value:.2f}".replace("-", "−")


def _format_number(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")

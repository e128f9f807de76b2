"""`neural attribute`: why a model gave one answer, and how far each explanation can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from neural.cli._progress import show_progress

OUT_SUFFIXES = (".html", ".htm", ".svg", ".pdf", ".png", ".json", ".csv")


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
    from neural.interpret.inputs import read_inputs
    from neural.workflows.attribute import attribute

    if bool(inputs) == bool(ids):
        raise click.UsageError("give the input with --input TEXT, or with --ids NUMBERS")
    if out is not None and out.suffix.lower() not in OUT_SUFFIXES:
        raise click.UsageError(
            f"{out}: a page is HTML and a figure SVG, PDF or PNG; name it "
            f"{out.with_suffix('.html')} or {out.with_suffix('.svg')}"
        )
    rows: list[Any] = list(read_inputs(inputs)) if inputs else [_parse_ids(row) for row in ids]

    name = Path(target).name
    with show_progress() as on_progress:
        result = attribute(
            target,
            rows,
            methods=methods or None,
            faithfulness=faithfulness,
            runs=root,
            on_progress=lambda done, total: on_progress(name, done, total),
            **options,
        )
    _formatting.print_result(result, as_json=as_json)
    if out is not None:
        result.save(out)
        hint = "; open it in a browser" if out.suffix.lower() in (".html", ".htm") else ""
        click.echo(f"{out}{hint}", err=as_json)


def _parse_ids(row: str) -> list[int]:
    try:
        return [int(word) for word in row.replace(",", " ").split()]
    except ValueError:
        raise click.UsageError('--ids takes whole numbers, such as --ids "5 3 9"') from None

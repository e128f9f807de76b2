"""`neural ablate`: how much the loss changes without each attention head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._options import (
    build_option,
    json_option,
    objective_option,
    out_option,
    runs_option,
)
from neural.cli._progress import show_progress

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("targets", metavar="[RUN|MODEL…]", nargs=-1)
@click.option(
    "--data",
    metavar="FILE",
    help="A text to measure the loss on; a run has held-out data of its own.",
)
@click.option(
    "--method",
    type=click.Choice(["mean", "zero", "resample", "pattern"]),
    default="mean",
    show_default=True,
    help="What a removed head writes: its mean output, nothing, its output for another example, "
    "or its values under another pattern.",
)
@click.option(
    "--pattern",
    type=click.Choice(["uniform", "diagonal", "previous", "average"]),
    default="uniform",
    show_default=True,
    help="The pattern of --method pattern.",
)
@click.option(
    "--examples",
    type=click.IntRange(2),
    default=64,
    show_default=True,
    help="Number of windows or examples.",
)
@click.option(
    "--length", type=click.IntRange(2), help="Tokens of a window of --data; 256 by default."
)
@objective_option()
@click.option("--head", "heads", multiple=True, metavar="HEAD", help="Only this head: L1h3.")
@click.option(
    "--pairs/--no-pairs", default=True, show_default=True, help="Also remove pairs of heads."
)
@click.option("--step", type=click.IntRange(0), help="Checkpoint of a run; the best by default.")
@click.option("--over-training", is_flag=True, help="All checkpoints that a run has kept.")
@click.option("--again", is_flag=True, help="Also measure steps that the run has already.")
@build_option()
@click.option("--save", is_flag=True, help="Keep the result of a model as a run.")
@click.option("--name", metavar="NAME", help="Name of the run of --save; the model's by default.")
@out_option("Write all heads as a table or as JSON.", metavar="FILE.csv|.json")
@runs_option()
@json_option()
def command(targets: tuple[str, ...], root: Path, as_json: bool, **options: Any) -> None:
    """Remove every attention head in turn: how much does the loss change? Newest run by default.

    \b
    $ neural ablate novel
    $ neural ablate novel --over-training
    $ neural ablate ./gpt2 --data notes.txt --method zero -o heads.csv
    $ neural ablate checkpoints/checkpoint-* --data notes.txt --save
    $ neural ablate ./minilm --data pairs.tsv --objective cosine

    Changes are in nats, with standard errors over examples; positive: the head helps. Beside them
    are the estimate by gradients, the head's role, and the token class that it matters most for.
    Then pairs of heads: a positive interaction means that one can stand in for the other. The
    result of a run is saved in its folder; its page shows it. Several models are checkpoints of
    one.
    """
    _ablate(targets, root, as_json=as_json, **options)


def _ablate(
    targets: tuple[str, ...],
    root: Path,
    *,
    heads: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    from neural.cli._run_selection import select_run
    from neural.core.errors import NeuralError
    from neural.workflows.ablate import ablate

    if out is not None and out.suffix.lower() not in (".csv", ".json", ".html"):
        raise NeuralError(f"{out}: name a .csv, .json or .html file")
    if out is not None and not out.absolute().parent.is_dir():
        raise NeuralError(f"there is no folder {out.parent} for {out.name}")
    with show_progress() as on_progress:
        result = ablate(
            list(targets) or select_run(None, root),
            heads=list(heads) or None,
            runs=root,
            on_progress=on_progress,
            **options,
        )
    _formatting.print_result(result, as_json=as_json)
    if out is not None:
        click.echo(f"written: {result.save(out)}", err=as_json)
    if result.saved is not None:
        saved = _formatting.relative_path(result.saved)
        click.echo(f"saved in {saved}; `neural report {saved.name}` shows it", err=True)

"""`neural patch`: which heads carry the difference between clean and corrupted inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import SEED
from neural.cli._options import (
    build_option,
    implementation_option,
    json_option,
    objective_option,
    out_option,
    runs_option,
)

if TYPE_CHECKING:
    from neural.workflows.patching import PatchingResult

OUT_SUFFIXES = (".html", ".htm", ".svg", ".json", ".csv")


@click.command()
@click.argument("target", metavar="MODEL|RUN")
@click.argument("pairs", metavar="PAIRS.yaml", type=click.Path(path_type=Path))
@click.option(
    "--metric",
    type=click.Choice(["logit_difference", "loss", "probability"]),
    help="Replaces the metric of the file.",
)
@objective_option()
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    type=click.Choice(["heads", "positions", "residual"]),
    help="What is patched; repeat for several. By default heads, and positions if it is quick.",
)
@click.option(
    "--path",
    "paths",
    multiple=True,
    nargs=2,
    metavar="HEAD HEAD|output",
    help='A path, such as --path "L0 h1" "L1 h0"; repeat for several.',
)
@click.option(
    "--through",
    type=click.Choice(["all", "q", "k", "v"]),
    default="all",
    show_default=True,
    help="Input of the receiving head that --path leads through.",
)
@click.option("--paths", "all_paths", is_flag=True, help="All paths between the heads that matter.")
@click.option("--no-null", is_flag=True, help="Skip the comparison with mismatched pairs.")
@click.option("--step", type=click.IntRange(0), help="Checkpoint of a run; the best by default.")
@build_option()
@implementation_option()
@click.option("--batch-size", type=click.IntRange(1), help="Examples that run at once.")
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Seed of the mismatched pairs."
)
@out_option("Write a page (.html), the heat map (.svg) or the numbers (.json).")
@runs_option()
@json_option()
def command(
    target: str,
    pairs: Path,
    out: Path | None,
    as_json: bool,
    root: Path,
    **options: Any,
) -> None:
    """Patch heads from clean into corrupted inputs: how much of a metric does each restore?

    \b
    $ neural patch ./gpt2 pairs.yaml -o page.html
    $ neural patch characters pairs.yaml --sweep heads --sweep residual
    $ neural patch ./gpt2 pairs.yaml --path "L0 h1" "L1 h0" --through k
    $ neural patch ./gpt2 pairs.yaml --paths --json | jq .paths

    MODEL is a target of `neural watch`, RUN a run by its folder or name. PAIRS.yaml has a metric and
    pairs with the keys clean, corrupted, answer and wrong; with --objective, clean and corrupted. A
    head has an effect if it restores more
    than the differences of other pairs do; at most 5 % of sweeps without any effect show one.
    """
    if out is not None and out.suffix.lower() not in OUT_SUFFIXES:
        raise click.UsageError(f"{out}: name it {out.with_suffix('.html')}, .svg, .json or .csv")
    if options["through"] != "all" and not options["paths"]:
        raise click.UsageError("--through belongs to --path: name the two heads")
    if options["paths"] and options["all_paths"]:
        raise click.UsageError("--path and --paths cannot be used together: choose one of them")
    result = _patch(target, pairs, root, **options)
    _formatting.print_result(result, as_json=as_json)
    if out is not None:
        saved = result.save(out)
        hint = "; open it in a browser" if out.suffix.lower() in OUT_SUFFIXES[:3] else ""
        click.echo(f"{saved}{hint}", err=as_json)


def _patch(
    target: str,
    pairs: Path,
    root: Path,
    *,
    metric: str | None,
    objective: str | None,
    sweeps: tuple[str, ...],
    paths: tuple[tuple[str, str], ...],
    through: str,
    all_paths: bool,
    no_null: bool,
    step: int | None,
    build: str | None,
    implementation: str | None,
    batch_size: int | None,
    seed: int,
) -> PatchingResult:
    from neural.workflows.patching import patch

    with _show_progress() as on_progress:
        return patch(
            target,
            pairs,
            metric=metric,
            objective=objective,
            sweeps=sweeps or None,
            paths=all_paths
            or [(*path, through) if path[1].strip().lower() != "output" else path for path in paths]
            or False,
            null=not no_null,
            step=step,
            build=build,
            implementation=implementation,
            batch_size=batch_size,
            seed=seed,
            runs=root,
            on_progress=on_progress,
        )


@contextmanager
def _show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A line on standard error that counts examples; nothing if that is no terminal."""
    is_terminal = sys.stderr.isatty()
    shown = False

    def on_progress(name: str, done: int, total: int) -> None:
        nonlocal shown
        if is_terminal:
            shown = True
            click.echo(f"\r\033[K{name}: {done:,} of {total:,} examples", nl=False, err=True)

    try:
        yield on_progress
    finally:
        if shown:
            click.echo("\r\033[K", nl=False, err=True)

"""`neural patch`: which heads carry the difference between clean and corrupted inputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from neural.core.escape import escape_json

if TYPE_CHECKING:
    from neural.workflows.patching import PatchingResult

MAX_LISTED_UNITS = 16
"""Units that are listed for a sweep, those that restore or oppose most."""
SWEEP_NAMES = {
    "heads": "heads, at all positions",
    "positions": "heads × positions",
    "residual": "residual stream × positions",
}
OUT_SUFFIXES = (".html", ".htm", ".svg", ".json")


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
    type=click.Choice(list(SWEEP_NAMES)),
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
        raise click.UsageError(f"{out}: name it {out.with_suffix('.html')}, .svg or .json")
    if options["through"] != "all" and not options["paths"]:
        raise click.UsageError("--through belongs to --path: name the two heads")
    if options["paths"] and options["all_paths"]:
        raise click.UsageError("--path and --paths cannot be used together: choose one of them")
    result = _patch(target, pairs, root, **options)
    if as_json:
        click.echo(escape_json(json.dumps(result.to_dict(), indent=1, ensure_ascii=False)))
    else:
        click.echo("\n".join(_format_result(result)))
    if out is not None:
        saved = result.save(out)
        hint = "; open it in a browser" if out.suffix.lower() != ".json" else ""
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


def _format_result(result: PatchingResult) -> list[str]:
    """Header, notes, and a table for every sweep and for the paths."""
    used = int(result.is_used.sum())
    clean, corrupted = (
        values[result.is_used].mean() for values in (result.clean, result.corrupted)
    )
    source = f", {result.source}" if result.source else ""
    lines = [
        _formatting.style_heading(result.model) + source,
        f"  {used} of {_formatting.format_count(len(result.pairs), 'pair')}; mean {result.metric}: "
        f"clean {clean:.3g}, corrupted {corrupted:.3g}".replace("-", "−"),
        *(f"  note: {note}" for note in result.notes),
    ]
    for kind, title in SWEEP_NAMES.items():
        if kind in result.sweeps:
            rows = result.list_rows(kind)
            lines += ["", _formatting.style_heading(title), *_format_units(rows)]
    path_rows = result.list_path_rows()
    if path_rows:
        lines += ["", _formatting.style_heading("paths")]
        table = [("path", "through", *_number_header(path_rows))]
        table += [
            (
                f"{row['sender']} → {row['receiver']}",
                row["through"],
                *_format_numbers(row, path_rows),
            )
            for row in path_rows
        ]
        lines += _formatting.format_table(table, right_aligned=(2,))
    return lines


def _format_units(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The units that restore or oppose most, with interval and p; effects that are not shown."""
    from neural.analysis.patching_effects import EFFECT_LEVEL, MIN_EFFECT_SHARE

    visible = [row for row in rows if abs(row["restored"] or 0.0) >= MIN_EFFECT_SHARE]
    shown = sorted(visible, key=lambda row: -abs(row["restored"]))[:MAX_LISTED_UNITS]
    has_position = any(row["position"] is not None for row in rows)
    table = [("", *(["position"] if has_position else []), *_number_header(rows))]
    for row in shown:
        name = f"L{row['layer']}" + ("" if row["head"] is None else f" h{row['head']}")
        position = [f"{row['position']} {_show_token(row['token'])}"] if has_position else []
        table.append((name, *position, *_format_numbers(row, rows)))
    column = 2 if has_position else 1
    lines = _formatting.format_table(table, right_aligned=(column, column + 2))
    if not shown:
        lines = [f"  all restore less than {MIN_EFFECT_SHARE}"]
    if any(row["p"] is not None for row in rows):
        effects = sum(row["effect"] for row in rows)
        lines.insert(
            0,
            f"  {effects} of {len(rows)} have an effect beyond mismatched pairs "
            f"(p ≤ {EFFECT_LEVEL})",
        )
    hidden = len(visible) - len(shown)
    if hidden > 0:
        lines.append(f"  and {hidden} more; --json or -o page.html has all")
    return lines


def _number_header(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    has_null = any(row["mismatched"] is not None for row in rows)
    return ("restored", "95 % interval", *(("other pairs", "p") if has_null else ()))


def _format_numbers(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    from neural.report.patching_plot import format_share

    interval = ""
    if row["low"] is not None:
        interval = f"{format_share(row['low'])} … {format_share(row['high'])}"
    numbers = (format_share(row["restored"]), interval)
    if len(_number_header(rows)) == 2:
        return numbers
    p = "" if row["p"] is None else f"{row['p']:.2g}"
    return (*numbers, format_share(row["mismatched"]), p)


def _show_token(token: str | None) -> str:
    from neural.report.patching_plot import format_token

    return f"`{format_token(token or '')}`"

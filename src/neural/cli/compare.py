"""`neural compare`: runs side by side, only where they differ; or the heads of two models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN
from neural.cli._options import build_option, json_option, runs_option

if TYPE_CHECKING:
    from neural.workflows.compare_models import ModelComparison


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=RUN)
@click.option(
    "--probe",
    "probes",
    multiple=True,
    metavar="TEXT|FILE",
    help="Match the heads of two models on this text; several become one batch.",
)
@click.option("--ids", multiple=True, metavar="NUMBERS", help="The same with token ids: `5 3 9`.")
@click.option("--heads", is_flag=True, help="Match the heads of two runs by their stored maps.")
@click.option("--same-layer", is_flag=True, help="Match heads of equal layers only.")
@build_option()
@click.option("--max-tokens", type=click.IntRange(1), help="Cut a longer probe.")
@runs_option()
@json_option()
def command(
    runs: tuple[str, ...],
    root: Path,
    as_json: bool,
    probes: tuple[str, ...],
    ids: tuple[str, ...],
    heads: bool,
    **options: Any,
) -> None:
    """Compare runs: settings that differ, best scores, curves, attention at the end.

    The name of a sweep stands for its runs. Runs that differ in their seeds alone form a group;
    groups are compared by pairs of seeds.

    \b
    $ neural compare 01-38-55 01-39-06
    $ neural compare rates                          all trials of a sweep
    $ neural compare ./base ./tuned --probe "The cat sat on the mat"

    With --probe, two models are compared head by head: any that `neural watch` takes, such as
    folders of Hugging Face, or runs. Heads are matched by their attention on the text, across
    seeds, sizes, or before and after fine-tuning; a null tells the same head from the same role.
    """
    from contextlib import ExitStack

    with ExitStack() as stack:
        if probes or ids or heads:
            comparison = _match_models(runs, root, probes, ids, heads, **options)
            _formatting.print_result(comparison, as_json=as_json)
            return
        if any(options.values()):
            raise click.UsageError("these options match heads: add --probe TEXT or --heads")
        for target in runs:
            is_function = ":" in target and not Path(target).exists()
            if is_function or (Path(target) / "config.json").is_file():
                raise click.UsageError(f"{target} is a model, not a run: add --probe TEXT")
        from neural.cli._run_selection import select_runs
        from neural.runs.run import Run
        from neural.workflows.compare import compare_runs

        paths = select_runs(runs, root)
        if len(paths) < 2:
            raise click.UsageError("name two runs or more, or a sweep of several runs")
        opened_runs = [stack.enter_context(Run.open(path)) for path in paths]
        _formatting.print_result(compare_runs(opened_runs), as_json=as_json)


def _match_models(
    targets: Sequence[str],
    root: Path,
    probes: Sequence[str],
    ids: Sequence[str],
    heads: bool,
    *,
    same_layer: bool,
    build: str | None,
    max_tokens: int | None,
) -> ModelComparison:
    from neural.cli._run_selection import select_run
    from neural.interpret.inputs import read_inputs
    from neural.runs.run import Run
    from neural.workflows.compare_models import compare_models, compare_snapshots

    if len(targets) != 2:
        raise click.UsageError("heads are matched between two models: name two")
    if bool(probes) + bool(ids) + heads > 1:
        raise click.UsageError("give one of --probe, --ids and --heads")
    if heads:
        with (
            Run.open(select_run(targets[0], root)) as first,
            Run.open(select_run(targets[1], root)) as second,
        ):
            return compare_snapshots(first, second, same_layer=same_layer)
    return compare_models(
        *targets,
        texts=read_inputs(probes),
        ids=ids,
        build=build,
        max_length=max_tokens,
        same_layer=same_layer,
        runs=root,
    )

"""`neural compare`: runs side by side, only where they differ; or the heads of two models.

`data` is the dict of `neural.workflows.compare.compare_runs`. Columns and rows name the runs by
letters: A is the first, against which the others are compared. A measure is a number per attention
head, such as its entropy; a snapshot is the attention captured at one step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN
from neural.cli._options import build_option, json_option, runs_option
from neural.core.escape import escape_controls, shorten

if TYPE_CHECKING:
    from neural.runs.run import Run
    from neural.workflows.compare_models import ModelComparison

MAX_CELL_WIDTH = 14
"""Characters of a setting in the table."""
MAX_SPARKLINE_WIDTH = 60


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
        data = compare_runs(opened_runs)
        click.echo(
            json.dumps(data, indent=2)
            if as_json
            else "\n".join(_format_comparison(opened_runs, data))
        )


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


def _format_comparison(runs: Sequence[Run], data: dict[str, Any]) -> list[str]:
    letters = [_run_letter(index) for index in range(len(runs))]
    rows = [
        (letter, summary["name"], _formatting.style_state(summary["state"]))
        for letter, summary in zip(letters, data["runs"], strict=True)
    ]
    lines = _formatting.format_table(rows, indent="")
    lines += ["", _formatting.style_heading("settings that differ")]
    settings = {
        key: [shorten(_format_value(value), MAX_CELL_WIDTH) for value in values]
        for key, values in data["settings"].items()
    }
    lines += _format_columns(letters, settings) if settings else ["  none"]
    lines += _format_program_diffs(letters, data["programs"]) if data["programs"] else []
    lines += [
        "",
        _formatting.style_heading("best scores"),
        *_format_columns(letters, _format_scores(data["runs"])),
    ]
    lines += _format_groups(letters, data["groups"])
    lines += _format_windows(letters, data["windows"])
    lines += _format_curves(runs, letters, data["curves"])
    return lines + _format_attention(letters, data["attention"])


def _format_attention(
    letters: Sequence[str], means_by_measure: dict[str, list[float | None]]
) -> list[str]:
    """A row per measure; for two runs also their difference."""
    if not means_by_measure:
        return []
    is_pair = len(letters) == 2
    cells = {
        name.replace("_", " "): [
            *(_formatting.format_measure(mean) for mean in means),
            *([_format_change(*means)] if is_pair else []),
        ]
        for name, means in means_by_measure.items()
    }
    columns = [*letters, *([f"{letters[1]} − {letters[0]}"] if is_pair else [])]
    return [
        "",
        _formatting.style_heading("attention at the last snapshot") + ", mean over heads",
        *_format_columns(columns, cells),
    ]


def _format_groups(letters: Sequence[str], groups: list[dict[str, Any]]) -> list[str]:
    """A line per group of runs that differ in their seeds alone."""
    if not groups:
        return []
    rows = []
    for group in groups:
        members = " ".join(letters[index] for index in group["runs"])
        verdict = _format_verdict(group["against_first"]) if group["against_first"] else ""
        if group["failed"]:
            failures = f"{group['failed']} of {len(group['runs'])} failed"
            verdict = f"{verdict}, {failures}" if verdict else failures
        rows.append((members, _formatting.format_number(group["mean"]), verdict))
    subtitle = f", {groups[0]['score']}, against {rows[0][0]} by pairs of seeds"
    return [
        "",
        _formatting.style_heading("over seeds") + subtitle,
        *_formatting.format_table(rows, right_aligned=(1,)),
    ]


def _format_verdict(comparison: dict[str, Any]) -> str:
    from neural.stats.comparisons import format_comparison
    from neural.stats.estimate import Estimate

    estimate = Estimate.from_dict(comparison, n=comparison["seeds"])
    return format_comparison(estimate, comparison["verdict"])


def _format_windows(letters: Sequence[str], comparisons: list[dict[str, Any] | None]) -> list[str]:
    """A line per language model scored on the same windows (chunks of held-out text) as the first.

    `comparisons` has an entry per run; None where there is nothing to compare.
    """
    from neural.stats.estimate import Estimate

    compared = [
        (letter, comparison)
        for letter, comparison in zip(letters, comparisons, strict=True)
        if comparison is not None
    ]
    if not compared:
        return []
    rows = []
    for letter, comparison in compared:
        estimate = Estimate.from_dict(comparison, n=comparison["windows"])
        # equal losses, or fewer than two blocks of windows, have none
        difference = str(estimate) if estimate.has_interval else f"{estimate} (no interval)"
        rows.append((f"{letter} − {letters[0]}", f"{difference} nats", comparison["verdict"]))
    _, first_comparison = compared[0]
    subtitle = (
        f", loss on the same {first_comparison['windows']:,} windows of held-out text, "
        f"in {first_comparison['blocks']} blocks; this seed only"
    )
    return [
        "",
        _formatting.style_heading("window by window") + subtitle,
        *_formatting.format_table(rows),
    ]


def _format_scores(summaries: list[dict[str, Any]]) -> dict[str, list[str]]:
    best_validations = [summary["best"] for summary in summaries]
    names = dict.fromkeys(name for best in best_validations if best for name in best["scores"])
    rows = {
        name: [
            _formatting.format_number(best["scores"].get(name)) if best else "–"
            for best in best_validations
        ]
        for name in names
    }
    return {
        **rows,
        "at step": [f"{best['step']:,}" if best else "–" for best in best_validations],
        "steps trained": [f"{summary['step']:,}" for summary in summaries],
    }


def _format_columns(letters: Sequence[str], rows: dict[str, list[str]]) -> list[str]:
    """A row per name, a column per run; several tables if the columns do not fit side by side."""
    margin = max(map(len, rows), default=0) + 4
    cell_width = max((len(cell) for cells in rows.values() for cell in cells), default=0)
    columns_per_table = max(1, (_formatting.terminal_width() - margin) // (max(cell_width, 3) + 2))
    lines: list[str] = []
    for start in range(0, len(letters), columns_per_table):
        columns = slice(start, start + columns_per_table)
        table = [
            ("", *letters[columns]),
            *((name, *cells[columns]) for name, cells in rows.items()),
        ]
        lines += _formatting.format_table(table, right_aligned=range(1, len(table[0])))
    return lines


def _format_curves(runs: Sequence[Run], letters: Sequence[str], names: dict[str, Any]) -> list[str]:
    """Sparklines of the losses: a line per run, all on one scale."""
    import numpy as np

    lines: list[str] = []
    for name in names:
        curves = [run.scalars(name) for run in runs]
        finite = np.concatenate([values[np.isfinite(values)] for _, values in curves])
        if not len(finite):
            continue
        last = int(max(steps.max(initial=0) for steps, _ in curves))
        # a quantile, because the loss of the first steps would flatten the rest of the curve
        low, high = float(finite.min()), float(np.quantile(finite, 0.99))
        rows = []
        for letter, (steps, values) in zip(letters, curves, strict=True):
            sparkline = _formatting.draw_sparkline(
                steps,
                values,
                last=last,
                low=low,
                high=high,
                columns=min(_formatting.terminal_width() - 26, MAX_SPARKLINE_WIDTH),
            )
            rows.append(
                (letter, sparkline, f"ends at {_formatting.format_number(float(values[-1]))}")
            )
        scale = (
            f", {_formatting.format_number(low)} to {_formatting.format_number(high)}, "
            f"steps 0 to {last:,}"
        )
        lines += ["", _formatting.style_heading(name) + scale, *_formatting.format_table(rows)]
    return lines


def _format_program_diffs(letters: Sequence[str], programs: list[str | None]) -> list[str]:
    """The lines in which each program differs from the first one."""
    from difflib import unified_diff

    lines: list[str] = []
    first_lines = (programs[0] or "").splitlines()
    for letter, program in zip(letters[1:], programs[1:], strict=True):
        diff = unified_diff(first_lines, (program or "").splitlines(), n=0, lineterm="")
        diff_lines = [line for line in diff if not line.startswith("@@")]
        if diff_lines:
            lines += [
                "",
                f"the program of {letter} compared with that of {letters[0]}",
                # the first two are the names of the files, `---` and `+++`
                *(f"  {escape_controls(line)}" for line in diff_lines[2:]),
            ]
    return lines


def _format_change(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return "–"
    return f"{'+' if second >= first else '−'}{_formatting.format_measure(abs(second - first))}"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else "–" if value is None else json.dumps(value)


def _run_letter(index: int) -> str:
    """Name of run `index` (from 0): A … Z, then A1 … Z1, A2 …"""
    cycle, letter_index = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[letter_index] + (str(cycle) if cycle else "")

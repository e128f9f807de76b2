"""`neural evaluate`: a run on what it has not seen, beside what needs no training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import RUN, Number

if TYPE_CHECKING:
    from neural.evaluating import Evaluation
    from neural.tasks.cutting.jackknife import Interval
    from neural.tracking.run import Run

COLUMNS = {
    "boundary_f1": "F1", "boundary_f1_within_1": "±1", "boundary_f1_within_2": "±2", "boundary_f1_macro": "macro F1",
    "pk": "Pk", "window_diff": "WindowDiff", "boundary_similarity": "B", "label_f1": "label F1",
}  # fmt: skip
"""Scores of the table and what heads their columns; others are in the JSON."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--data", metavar="FILE|FOLDER", help="Other documents with known parts, in place of the run's own.")
@click.option("--threshold", type=Number(0, 1, min_open=True, max_open=True), metavar="P",
              help="Probability above which a part begins; the run's own if not said.")  # fmt: skip
@click.option("--allow-duplicates", is_flag=True, help="Take documents that the run learned from, too.")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="All scores with their intervals, for machines.")
def command(
    run: str | None, data: str | None, threshold: float | None, allow_duplicates: bool, root: Path, as_json: bool
) -> None:
    """Score a run on documents that it did not learn from; the newest run if none is named.

    \b
    $ neural evaluate
    $ neural evaluate articles --data choi/3-11
    $ neural evaluate articles --json | jq .lifts.pk

    Of segmentation: every score beside those of the baselines, on the test part of the run's documents, or on its
    validation part where it has none. Of other tasks: their own scores on what was held out.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.experiments import find_run
        from neural.tracking.run import Run

        with Run.open(find_run(run, root)) as found:
            if found.settings.get("task") == "segmentation":
                from neural.evaluating import evaluate

                evaluation = evaluate(found, data, threshold=threshold, allow_duplicates=allow_duplicates)
                text = json.dumps(evaluation.to_dict(), allow_nan=False) if as_json else "\n".join(_page(evaluation))
                click.echo(text)
            else:
                given = {
                    "--data": data is not None, "--threshold": threshold is not None,
                    "--allow-duplicates": allow_duplicates,
                }  # fmt: skip
                _others(found, next((option for option, is_given in given.items() if is_given), None), as_json)


def _page(evaluation: Evaluation) -> list[str]:
    from neural.cli import _text

    table = evaluation.table
    model = next(iter(table.rows))
    columns = {name: short for name, short in COLUMNS.items() if name in table.rows[model]}
    calibrated = evaluation.cutter.calibration.name()
    method = "not calibrated" if calibrated == "none" else f"calibrated ({calibrated})"
    lines = [f"{_text.heading(evaluation.cutter.name)}  on {evaluation.held.where}",
             f"  threshold {evaluation.threshold:.3g}, {method}"]  # fmt: skip
    lines += [f"  note: {one}" for one in evaluation.remarks]
    best = {name: evaluation.table.lifts[name].over for name in columns if name in evaluation.table.lifts}
    rows = [("", *(f"{one} " for one in columns.values()))]
    for name, row in table.rows.items():
        marks = {one: "*" if best.get(one) == name else " " for one in columns}
        cells = [f"{row[one].value:.3f}{mark}" if one in row else "– " for one, mark in marks.items()]
        rows.append((name.replace("_", " "), *cells))
    lines += ["", *_text.table(rows, right=range(1, len(columns) + 1))]
    lines += ["  * the best baseline; lower is better for Pk and WindowDiff, higher for the others", ""]
    rows = [("", "this run", "95 % interval", "lift", "95 % interval")]
    for name, short in columns.items():
        own, lift = table.rows[model][name], table.lifts.get(name)
        by, ends = (_sign(lift.difference.value), _ends(lift.difference)) if lift else ("", "")
        rows.append((short, f"{own.value:.3f}", _ends(own), by, ends))
    lines += _text.table(rows, right=(1, 3))
    return [
        *lines,
        "  lift: how much better than the best baseline, whichever that is on other documents",
        f"  95 % intervals over {table.over}, each left out in turn",
    ]


def _ends(one: Interval) -> str:
    return f"{_sign(one.low, plus='')} … {_sign(one.high, plus='')}" if one.low == one.low else "–"


def _sign(value: float, plus: str = "+") -> str:
    return "–" if value != value else f"{value:{plus}.3f}".replace("-", "−")


def _others(run: Run, refused: str | None, as_json: bool) -> None:
    """The task's own scores on what it held out."""
    from neural.cli import _text
    from neural.cli._mistakes import Refused
    from neural.experiments import best_model, task_of_run
    from neural.modules.late import torch
    from neural.tasks._text_overlap import overlap_note
    from neural.tasks.task import split_scores

    if refused is not None:
        raise Refused(f"{refused} is for runs of `segmentation`; {run.name} is one of `{run.settings.get('task')}`")
    task = task_of_run(run)
    notes = [*task.remarks, *overlap_note(run.name, run.described("data/shared_ngrams"))]
    model = best_model(run.path, task)
    with torch.no_grad():
        scores, _ = split_scores(task.evaluate(model))
    if not scores:
        raise Refused(f"{run.name} holds nothing out, so there is nothing to score it on")
    if as_json:
        click.echo(json.dumps({"run": run.name, "scores": scores, "remarks": notes}))
        return
    click.echo(f"{_text.heading(run.name)}  {run.settings.get('task')}, on what was held out while it learned")
    click.echo("".join(f"  note: {note}\n" for note in notes), nl=False)
    rows = [(name.removeprefix("valid/").replace("_", " "), _text.number(value)) for name, value in scores.items()]
    click.echo("\n".join(_text.table(rows, right=(1,))))

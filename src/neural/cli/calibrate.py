"""`neural calibrate`: fit a calibration of a segmentation run's probabilities.

Elements are the sentences or lines of a document; a segment begins at some of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN, SEED
from neural.cli._options import json_option, runs_option

if TYPE_CHECKING:
    from neural.workflows.calibrate import CalibrationResult


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--data",
    metavar="FILE|FOLDER",
    help="Documents with known segments, not trained on; the run's validation split by default.",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="Number of cross-validation folds.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of the assignment of documents to folds.",
)
@click.option(
    "--allow-duplicates", is_flag=True, help="Also use documents that the run was trained on."
)
@runs_option()
@json_option("Print the saved calibration as JSON.")
def command(
    run: str | None,
    data: str | None,
    folds: int,
    seed: int,
    allow_duplicates: bool,
    root: Path,
    as_json: bool,
) -> None:
    """Calibrate a run's probabilities: compare methods, keep the best; the newest run by default.

    \b
    $ neural calibrate articles
    $ neural calibrate articles --data more_notes/

    Methods are compared by cross-validation; the lowest log loss wins, and `none` is a candidate.
    The result is saved in the run folder, with a threshold and reliability diagrams; `segment`,
    `predict` and `evaluate` use it.
    """
    from neural.cli._run_selection import select_run
    from neural.runs.run import Run
    from neural.tasks.segmentation.calibration_selection import CALIBRATION_FILE
    from neural.workflows.calibrate import calibrate

    with Run.open(select_run(run, root)) as opened_run:
        result = calibrate(
            opened_run, data, folds=folds, seed=seed, allow_duplicates=allow_duplicates
        )
        if as_json:
            saved_text = (opened_run.path / CALIBRATION_FILE).read_text(encoding="utf-8")
            click.echo(json.dumps(json.loads(saved_text)))
        else:
            click.echo("\n".join(_format_calibration(result)))


def _format_calibration(result: CalibrationResult) -> list[str]:
    """A table of the compared methods for boundaries and labels, the threshold and the files."""
    calibration = result.calibration
    lines = [f"{_formatting.style_heading(result.pipeline.name)}  on {result.data.description}"]
    lines += [f"  note: {note}" for note in result.data.notes]
    for title, selection in (
        ("P(a segment begins)", calibration.boundary),
        ("confidence in the label", calibration.label),
    ):
        if selection is not None:
            size = f"{selection.elements:,} elements of {selection.documents:,} documents"
            lines += [
                "",
                f"{_formatting.style_heading(title)}  {size}",
                *(f"  {line}" for line in selection.format_table().splitlines()),
            ]
    lines += [
        "",
        f"threshold {calibration.threshold:.3g}: the best F1 on these documents, "
        f"{calibration.f1:.3f}",
    ]
    files = ", ".join(file.name for file in result.files)
    lines.append(f"saved: {files} in {_formatting.relative_path(result.files[0].parent)}")
    return lines

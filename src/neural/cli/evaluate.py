"""`neural evaluate`: scores of a run on data it was not trained on, beside baselines.

A segmentation run predicts where a segment of a document, such as a topic, begins. `shipped` in
place of a run is the segmenter that comes with the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neural.cli._arguments import RUN, FiniteFloatRange
from neural.cli._options import json_option, runs_option

ALIASES = ("eval", "test")
"""Other names of this command."""


@click.command()
@click.argument("run", required=False, type=RUN, metavar="[RUN|shipped]")
@click.argument("file", required=False, type=click.Path(), metavar="[FILE|FOLDER]")
@click.option(
    "--data",
    metavar="FILE|FOLDER",
    help="Other examples with labels, text or documents, in place of the run's own.",
)
@click.option(
    "--threshold",
    type=FiniteFloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability above which a segment begins; that of the run by default.",
)
@click.option(
    "--decode",
    type=click.Choice(["threshold", "expected_pk"]),
    help="How a segmentation decides boundaries: by the threshold, or for the smallest expected Pk.",
)
@click.option(
    "--layout",
    type=click.Choice(["remove", "keep"]),
    help="Whether documents with titled parts (`parts` in .jsonl) keep headings and blank lines.",
)
@click.option(
    "--allow-duplicates", is_flag=True, help="Also score data that the run was trained on."
)
@runs_option()
@json_option("Print all scores with their intervals as JSON.")
def command(
    run: str | None,
    file: str | None,
    data: str | None,
    threshold: float | None,
    decode: str | None,
    layout: str | None,
    allow_duplicates: bool,
    root: Path,
    as_json: bool,
) -> None:
    """Score a run on held-out data; the newest run by default.

    \b
    $ neural evaluate
    $ neural evaluate Digits test.csv
    $ neural evaluate --data test.csv
    $ neural evaluate articles --json | jq .lifts.pk
    $ neural evaluate articles --decode expected_pk
    $ neural evaluate shipped --data documents/

    Test data if the run has some, else its validation data, or the file that is named. Tables and
    arrays: scores with intervals, beside a constant and a linear model. Language models: loss beside
    unigrams and bigrams. Segmentation: all scores beside those of the baselines. Other tasks: their
    own scores on held-out data. The page of the run shows the newest evaluation. `shipped` is the
    segmenter of the package: it is scored on any documents with known segments.
    """
    if file is not None and data is not None:
        raise click.UsageError(f"{file} and --data {data} are both data: name one of them")
    if run is not None and file is None and Path(run).is_file():
        raise click.UsageError(f"{run} is a file, not a run: name it with --data {run}")
    data = data if file is None else file
    from neural.cli._formatting import print_result
    from neural.workflows.evaluate import SHIPPED, evaluate

    options = {
        "data": data,
        "threshold": threshold,
        "decode": decode,
        "layout": layout,
        "allow_duplicates": allow_duplicates,
    }
    # A task accepts only its own options: those that were not used are left out.
    used_options: dict[str, Any] = {
        name: value for name, value in options.items() if value not in (None, False)
    }
    if run == SHIPPED:
        evaluation = evaluate(SHIPPED, **used_options)
    else:
        from neural.cli._run_selection import select_run
        from neural.runs.run import Run

        with Run.open(select_run(run, root)) as opened_run:
            evaluation = evaluate(opened_run, **used_options)
    print_result(evaluation, as_json=as_json)

"""`neural evaluate`: scores of a run on data it was not trained on, beside baselines."""

from __future__ import annotations

import json
from pathlib import Path

import click

from neural.cli._arguments import RUN, FiniteFloatRange


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--data",
    metavar="FILE|FOLDER",
    help="Other documents with known segments, in place of the run's own.",
)
@click.option(
    "--threshold",
    type=FiniteFloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability above which a segment begins; that of the run by default.",
)
@click.option(
    "--allow-duplicates", is_flag=True, help="Also use documents that the run was trained on."
)
@click.option(
    "--runs",
    "root",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print all scores with their intervals as JSON."
)
def command(
    run: str | None,
    data: str | None,
    threshold: float | None,
    allow_duplicates: bool,
    root: Path,
    as_json: bool,
) -> None:
    """Score a run on held-out data; the newest run by default.

    \b
    $ neural evaluate
    $ neural evaluate articles --data choi/3-11
    $ neural evaluate articles --json | jq .lifts.pk

    Segmentation: all scores beside those of the baselines, on the run's test documents, or on its
    validation documents if it has none. Other tasks: their own scores on held-out data.
    """
    from neural.cli._errors import report_errors

    with report_errors():
        from neural.cli._formatting import print_section, terminal_width
        from neural.runs.find import find_run
        from neural.runs.run import Run
        from neural.workflows.evaluate import evaluate

        options = {"data": data, "threshold": threshold, "allow_duplicates": allow_duplicates}
        # A task accepts only its own options: those that were not used are left out.
        used_options = {
            name: value for name, value in options.items() if value not in (None, False)
        }
        with Run.open(find_run(run, root)) as opened_run:
            evaluation = evaluate(opened_run, **used_options)
        if as_json:
            click.echo(json.dumps(evaluation.to_dict(), allow_nan=False))
            return
        for index, section in enumerate(evaluation.to_sections(terminal_width())):
            if index:
                click.echo()
            print_section(section)

"""`neural predict`: predictions of a run for documents, tables and arrays."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from neural.cli._arguments import INPUT_FILE, RUN


@click.command()
@click.argument("run", type=RUN)
@click.argument("source", metavar="INPUT", type=INPUT_FILE)
@click.option(
    "--runs",
    "root",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print a line of JSON per document or example."
)
def command(run: str, source: str, root: Path, as_json: bool) -> None:
    """Predict with a trained run.

    \b
    $ neural predict songs new_song.txt             a label and P(a segment begins) for every line
    $ neural predict songs new_songs.jsonl --json   many documents; `-` is standard input
    $ neural predict Digits rows.csv                classes and probabilities; also .npz, .npy, .tsv

    Columns of a table are matched by name, in any order, if the training data had names.
    Probabilities are calibrated if the run is (`neural calibrate`). Language models write text with
    `neural generate`.
    """
    from neural.cli._errors import report_errors

    with report_errors():
        from neural.cli._formatting import print_section, terminal_width
        from neural.runs.find import find_run
        from neural.runs.run import Run
        from neural.workflows.predict import predict

        with Run.open(find_run(run, root)) as opened_run:
            predictions = predict(opened_run, sys.stdin.buffer.read() if source == "-" else source)
            for note in predictions.notes:
                click.echo(f"note: {note}", err=True)
            for index, prediction in enumerate(predictions.items):
                if as_json:
                    for record in prediction.to_records():
                        click.echo(json.dumps(record, ensure_ascii=False))
                else:
                    if index:
                        click.echo()
                    print_section(prediction.to_section(terminal_width()))

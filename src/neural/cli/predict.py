"""`neural predict`: predictions of a run for documents, tables and arrays."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from neural.cli._arguments import INPUT_FILE, RUN
from neural.cli._options import STANDARD_STREAM, json_option, out_option, runs_option
from neural.core.escape import escape_controls, escape_json


@click.command()
@click.argument("run", required=False, type=RUN)
@click.argument("source", metavar="INPUT", required=False, type=INPUT_FILE)
@runs_option()
@out_option(
    "Write all predictions to a .csv, .tsv, .jsonl or .parquet file.",
    allow_stdout=True,
)
@json_option("Print a line of JSON per document or example.")
def command(
    run: str | None, source: str | None, root: Path, out: Path | None, as_json: bool
) -> None:
    """Predict with a trained run; the newest run by default.

    \b
    $ neural predict songs new_song.txt             a label and P(a segment begins) for every line
    $ neural predict songs new_songs.jsonl --json   many documents; `-` is standard input
    $ neural predict Digits rows.csv                classes and probabilities; also .npz, .npy, .tsv
    $ neural predict shop new.csv -o bought.csv     every row: identifier, class, probabilities
    $ neural predict focus-lvml own.npz --json      classes, and the focus on every segment
    $ cat new.csv | neural predict shop - -o -      CSV, TSV or JSON lines in, CSV out

    Columns of a table are matched by name, in any order, if the training data had names.
    Probabilities are calibrated if the run is (`neural calibrate`). Language models write text with
    `neural generate`.
    """
    from neural.core.errors import NeuralError

    if run is not None and source is None and (run == "-" or Path(run).is_file()):
        run, source = None, run
    from neural.cli._formatting import print_section, terminal_width
    from neural.cli._run_selection import select_run
    from neural.runs.run import Run
    from neural.workflows.predict import describe_input, predict_lazily
    from neural.workflows.prediction_files import (
        find_writer,
        format_predictions,
        save_predictions,
    )

    if out is not None and out != STANDARD_STREAM:
        find_writer(out)  # an unknown suffix is an error before any work
    with Run.open(select_run(run, root)) as opened_run:
        if source is None:
            name = run or opened_run.name
            raise NeuralError(
                f"{name} needs an input: {describe_input(opened_run)}\n  neural predict {name} FILE"
            )
        content = sys.stdin.buffer.read() if source == "-" else source
        predictions = predict_lazily(opened_run, content)
        for note in predictions.notes:
            click.echo(f"note: {escape_controls(note)}", err=True)
        if out is not None:
            if out == STANDARD_STREAM:
                click.echo(format_predictions(predictions, as_json=as_json), nl=False)
            else:
                count = save_predictions(predictions, out)
                click.echo(f"wrote {out}, {count:,} row{'s' * (count != 1)}", err=True)
            return
        for index, prediction in enumerate(predictions.items):
            if as_json:
                for record in prediction.to_records():
                    click.echo(escape_json(json.dumps(record, ensure_ascii=False)))
            else:
                if index:
                    click.echo()
                print_section(prediction.to_section(terminal_width()))

"""`neural predict`: what a run says about examples or documents that nobody has judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN, TEXT

if TYPE_CHECKING:
    from neural.predicting import PredictedDocument, PredictedRows
    from neural.segmenting import Cutter
    from neural.tracking.run import Run

SHOWN = 3
"""Classes of an example in the table, the likeliest first; all are in the JSON."""


@click.command()
@click.argument("run", type=RUN)
@click.argument("source", metavar="INPUT", type=TEXT)
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="A line of JSON per document or example.")
def command(run: str, source: str, root: Path, as_json: bool) -> None:
    """Predict with a trained run.

    \b
    $ neural predict songs new_song.txt             a label and P(a part begins) for every line
    $ neural predict songs new_songs.jsonl --json   the same of many; `-` is standard input
    $ neural predict Digits rows.csv                classes with their probabilities; .npz, .npy and .tsv too

    Columns of a table are found by their names, in any order, where the training data had names.
    Probabilities are calibrated where the run was (`neural calibrate`). Text is written by `neural generate`.
    """
    from neural.cli._mistakes import Refused, told

    with told():
        from neural.experiments import find_run
        from neural.tracking.run import Run

        with Run.open(find_run(run, root)) as found:
            task = found.settings.get("task")
            if task == "segmentation":
                _documents(found, source, as_json)
            elif task == "supervised":
                _rows(found, source, as_json)
            elif task == "language_model":
                raise Refused(f"{found.name} is a language model: it writes with `neural generate {found.name}`")
            else:
                raise Refused(f"{found.name} is a run of `{task}`, whose examples are made up and not read from files")


def _documents(run: Run, source: str, as_json: bool) -> None:
    from neural.predicting import predicted_documents

    given: str | bytes = sys.stdin.buffer.read() if source == "-" else source
    cutter, remarks, found = predicted_documents(run, given)
    for one in remarks:
        click.echo(f"note: {one}", err=True)
    for number, one in enumerate(found):
        click.echo(_json(cutter, one) if as_json else "\n".join([*([""] if number else []), *_page(cutter, one)]))


def _page(cutter: Cutter, one: PredictedDocument) -> list[str]:
    """A line per element, a blank line before every part."""
    from neural.cli import _text

    count = int(one.boundaries.sum()) + 1
    labelled = one.labels is not None
    lines = [f"{_text.heading(one.document.name)}  {len(one.document):,} elements, {count:,} part{'s' * (count != 1)}; "
             f"P(a part begins){', label' * labelled}"]  # fmt: skip
    names = list(cutter.labels)
    wide = max(map(len, names)) if labelled else 0
    room = max(20, _text.width() - 10 - (wide + 6) * labelled)
    for place, element in enumerate(one.document.elements):
        said = ""
        if one.labels is not None:
            likely = int(one.labels[place].argmax())
            said = f"{names[likely]:<{wide}} {one.labels[place, likely]:.2f}  "
        begins = "    " if place == 0 else f"{one.begins[place]:.2f}"
        lines += [""] * bool(one.boundaries[place]) + [f"  {begins}  {said}{_text.cut(element, room)}".rstrip()]
    return lines


def _json(cutter: Cutter, one: PredictedDocument) -> str:
    said: dict[str, Any] = {
        "name": one.document.name, "elements": list(one.document.elements),
        "boundaries": [int(at) for at in one.boundaries.nonzero()[0]], "threshold": cutter.threshold,
        "probability": one.begins.round(6).tolist(),
    }  # fmt: skip
    if one.labels is not None:
        said["labels"] = [cutter.labels[int(at)] for at in one.labels.argmax(axis=1)]
        sure = zip(cutter.labels, one.labels.T.round(6).tolist(), strict=True)
        said["label_probabilities"] = dict(sure)
    return json.dumps(said, ensure_ascii=False)


def _rows(run: Run, source: str, as_json: bool) -> None:
    from neural.cli import _text
    from neural.predicting import predicted_rows

    found = predicted_rows(run, source)
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        for number in range(len(found.answers)):
            click.echo(json.dumps(found.to_dict(number), ensure_ascii=False))
        return
    head = {"softmax": "likeliest", "sigmoid": "P(yes)"}.get(found.kind, "value")
    rows = [("", head, ""), *((str(number), *_row(found, number)) for number in range(len(found.answers)))]
    click.echo("\n".join(_text.table(rows, right=(0,))))


def _row(found: PredictedRows, number: int) -> tuple[str, str]:
    """The likeliest class and how sure, then the next ones; or the numbers."""
    from neural.cli import _text

    own = found.answers[number]
    if found.kind != "softmax":
        return _text.cut(" ".join(_text.number(float(one)) for one in own.ravel()), 60), ""
    if own.ndim > 1:   # an answer at every position
        return _text.cut(" ".join(found.name(int(one)) for one in own.argmax(axis=-1).ravel()), 60), ""
    first, *others = own.argsort()[::-1][:SHOWN].tolist()
    return f"{found.name(first)} {own[first]:.3f}", "  ".join(f"{found.name(one)} {own[one]:.3f}" for one in others)

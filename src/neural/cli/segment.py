"""`neural segment`: a text → its parts, with a probability at every gap."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN, TEXT, Number

if TYPE_CHECKING:
    from neural.segmented import Segmented
    from neural.tasks.cutting.reading import Raw

ENDINGS = {"text": ".parts.txt", "json": ".parts.json", "html": ".parts.html"}
"""What output files in a folder are called, after the file they are of."""
LONG = 500_000
"""Characters from which on a terminal is told how far it is."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=TEXT)
@click.option("--run", metavar="RUN", type=RUN, help="A segmenter that you trained; the shipped one if not said.")
@click.option("--min", "least", type=click.IntRange(1), metavar="N", help="Sentences or lines of the shortest part.")
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="Sentences or lines of the longest part.")
@click.option("--threshold", type=Number(0, 1, min_open=True, max_open=True), metavar="P",
              help="Probability above which a part begins; the segmenter's own if not said.")  # fmt: skip
@click.option("--unit", type=click.Choice(["sentences", "lines"]), help="What a text is made of; as it was learned.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True,
              help="json: a line per file, with every gap; html: a page with the curve in the margin.")  # fmt: skip
@click.option("--json", "form", flag_value="json", help="Short for --format json.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE|FOLDER",
              help="Write there; into a folder where there are several files.")  # fmt: skip
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
def command(files: tuple[str, ...], **asked: Any) -> None:
    """Find where one part of a text ends and the next begins.

    \b
    $ neural segment notes.txt
    $ neural segment book.txt --min 5 --max 60 --format html --out book.html
    $ cat talk.txt | neural segment - --format json | jq -r '.parts[].title'
    $ neural segment songs/*.txt --run songs --out cut/ --format json

    The parts joined are the file, byte for byte; `start` and `end` count characters. Of all segmentations that keep
    --min and --max, the most probable one is taken.
    """
    from neural.cli._mistakes import told

    with told():
        _segment(files, **asked)


def _segment(
    files: tuple[str, ...], run: str | None, least: int | None, most: int | None, threshold: float | None,
    unit: Any, form: str, out: Path | None, runs: Path,
) -> None:  # fmt: skip
    from neural.cli._mistakes import Refused
    from neural.segmented import segmented

    if least and most and least > most:
        raise Refused(f"--min {least} and --max {most}: the shortest part cannot be longer than the longest")
    if form == "html" and len(files) > 1 and out is None:
        raise Refused("several pages do not go into one output: name a folder with --out")
    targets = _targets(files, form, out)
    raws = [_read(file) for file in files]   # all of them first: one that is no text leaves nothing half done
    cutter = _cutter(run, runs)
    for remark in (*cutter.remarks, *(one for raw in raws for one in raw.remarks)):
        click.echo(f"note: {remark}", err=True)
    for number, (raw, target) in enumerate(zip(raws, targets, strict=True)):
        with _Progress(raw) as tell:
            found = segmented(raw, cutter, least=least, most=most, threshold=threshold, unit=unit, tell=tell)
        text = _written(found, form)
        if target is None:
            click.echo("\n" * (number > 0 and form == "text") + text)
        else:
            _put(target, text, found)


def _cutter(run: str | None, runs: Path) -> Any:
    from neural.experiments import find_run
    from neural.segmenting import cutter_of_run, shipped
    from neural.tracking.run import Run

    if run is None:
        return shipped()
    with Run.open(find_run(run, runs)) as found:
        return cutter_of_run(found)


def _read(file: str) -> Raw:
    from neural.tasks.cutting.reading import decode, read_raw

    if file == "-":
        return decode(sys.stdin.buffer.read(), "standard input")
    return read_raw(Path(file))


def _targets(files: tuple[str, ...], form: str, out: Path | None) -> list[Path | None]:
    """Where each result goes, None for the terminal; refused before anything is read."""
    from neural.cli._mistakes import Refused

    if out is None:
        return [None] * len(files)
    if len(files) == 1 and not out.is_dir():
        targets = [out]
    else:
        names = ["standard input" if file == "-" else Path(file).name for file in files]
        targets = [out / f"{name}{ENDINGS[form]}" for name in names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise Refused(f"two of the files are called {twice}: cut them into two folders")
        if out.exists() and not out.is_dir():
            raise Refused(f"--out {out} is a file; for several files name a folder")
    inputs = {Path(file).absolute() for file in files if file != "-"}
    for target in targets:
        if target.absolute() in inputs:
            raise Refused(f"--out {target} is the text itself; name another file")
        if len(files) == 1 and not target.absolute().parent.is_dir():
            raise Refused(f"there is no folder {target.parent} for --out")
    return list(targets)


def _put(target: Path, text: str, found: Segmented) -> None:
    from neural.cli._mistakes import Failed
    from neural.cli._text import near
    from neural.core.files import write_atomically

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text + "\n", durable=False)
    except OSError as error:
        raise Failed(f"{target}: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"{found.raw.name}: {found.summary}; {near(target)}", err=True)


def _written(found: Segmented, form: str) -> str:
    if form == "html":
        return found.to_html().rstrip("\n")
    if form == "json":
        return json.dumps(found.to_dict(), ensure_ascii=False)
    return "\n".join(_page(found))


def _page(found: Segmented) -> list[str]:
    """The curve of all gaps in a line, then a line for every part."""
    from neural.cli import _text
    from neural.segmented import highest

    lines = [f"{_text.heading(found.raw.name)}  {found.summary}"]
    if len(found.document) > 1:
        curve = highest(found.probabilities[1:], _text.width() - 4)
        top = len(_text.BLOCKS) - 1
        lines.append("  " + "".join(_text.BLOCKS[round(one * top)] for one in curve))
    rows = [("", "start", "end", found.unit, "P", "inside", "")]
    rows += [
        (f"{number}", f"{one.start:,}", f"{one.end:,}", f"{one.last - one.first:,}",
         "" if one.probability is None else f"{one.probability:.2f}", f"{one.inside:.2f}" if one.inside else "",
         one.title)
        for number, one in enumerate(found.parts, start=1)
    ]  # fmt: skip
    return [*lines, *_text.table(rows, right=(0, 1, 2, 3, 4, 5))]


class _Progress:
    """How far a long text is, in a terminal; nothing elsewhere."""

    def __init__(self, raw: Raw) -> None:
        self.name, self.shown = raw.name, len(raw.text) > LONG and sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        self.say("finding and describing the elements")
        return self

    def __call__(self, done: int, count: int) -> None:
        self.say(f"{done / count:.0%} of {count:,} elements")

    def __exit__(self, *_: object) -> None:
        if self.shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def say(self, how_far: str) -> None:
        """In the place of what was said before."""
        if self.shown:
            click.echo(f"\r\x1b[K{self.name}: {how_far}", nl=False, err=True)

"""`neural segment`: split texts into segments, with a boundary probability at every gap.

An element is a sentence or a line of the text; a gap is the place between two elements. A
segmenter is a trained model that predicts P, the probability that a segment begins at an element.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import INPUT_FILE, RUN, FiniteFloatRange
from neural.cli._options import STANDARD_STREAM, json_option, out_option, runs_option

if TYPE_CHECKING:
    from neural.tasks.segmentation.pipeline import SegmentationPipeline
    from neural.tasks.segmentation.reader import RawText
    from neural.workflows.segment import SegmentationResult

OUTPUT_SUFFIXES = {"text": ".parts.txt", "json": ".parts.json", "html": ".parts.html"}
"""Suffixes appended to the names of the input files, for output into a folder."""
MIN_PROGRESS_CHARACTERS = 500_000
"""Longer texts show their progress on a terminal."""

ALIASES = ("split",)
"""Other names of this command."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=INPUT_FILE)
@click.option(
    "--run",
    metavar="RUN",
    type=RUN,
    help="A segmentation run; the segmenter shipped with the package by default.",
)
@click.option(
    "--min",
    "min_elements",
    type=click.IntRange(1),
    metavar="N",
    help="Smallest number of sentences or lines of a segment.",
)
@click.option(
    "--max",
    "max_elements",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of sentences or lines of a segment.",
)
@click.option(
    "--threshold",
    type=FiniteFloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability above which a segment begins; that of the segmenter by default.",
)
@click.option(
    "--unit",
    type=click.Choice(["sentences", "lines"]),
    help="Elements of the text; as in the segmenter's training by default.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
    help="json: a line per file, with all gaps; html: a page with the curve in the margin.",
)
@json_option("Short for --format json.", form=True)
@out_option(
    "File to write; a folder for several input files.", metavar="FILE|FOLDER", allow_stdout=True
)
@runs_option()
def command(files: tuple[str, ...], **options: Any) -> None:
    """Split texts into segments by topic.

    \b
    $ neural segment notes.txt
    $ neural segment book.txt --min 5 --max 60 --format html --out book.html
    $ cat talk.txt | neural segment - --format json | jq -r '.segments[].title'
    $ neural segment songs/*.txt --run songs --out cut/ --format json

    The segments joined are the text without any change; `start` and `end` count characters. The
    result is the most probable of all segmentations that respect --min and --max.
    """
    from neural.cli._errors import report_errors

    with report_errors():
        _segment(files, **options)


def _segment(
    files: tuple[str, ...],
    run: str | None,
    min_elements: int | None,
    max_elements: int | None,
    threshold: float | None,
    unit: Any,
    form: str,
    out: Path | None,
    root: Path,
) -> None:
    from neural.cli._errors import UserError
    from neural.workflows.segment import segment_text

    if min_elements and max_elements and min_elements > max_elements:
        raise UserError(f"--min {min_elements} must not be larger than --max {max_elements}")
    if form == "html" and len(files) > 1 and out in (None, STANDARD_STREAM):
        raise UserError("several pages need a folder: name a folder with --out")
    output_paths = _resolve_targets(files, form, out)
    # All files are read first, so that an unreadable one does not leave half of the output.
    raw_texts = [_read_text(file) for file in files]
    pipeline = _load_pipeline(run, root)
    for note in (*pipeline.notes, *(note for raw_text in raw_texts for note in raw_text.notes)):
        click.echo(f"note: {note}", err=True)
    for index, (raw_text, output_path) in enumerate(zip(raw_texts, output_paths, strict=True)):
        with _SegmentProgress(raw_text) as progress:
            segmentation = segment_text(
                raw_text,
                pipeline,
                min_elements=min_elements,
                max_elements=max_elements,
                threshold=threshold,
                unit=unit,
                on_progress=progress,
            )
        text = _render(segmentation, form)
        if output_path is None:
            click.echo("\n" * (index > 0 and form == "text") + text)
        else:
            _write_output(output_path, text, segmentation)


def _load_pipeline(run: str | None, root: Path) -> SegmentationPipeline:
    from neural.tasks.segmentation.pipeline import load_shipped_pipeline

    if run is None:
        return load_shipped_pipeline()
    from neural.cli._run_selection import select_run
    from neural.runs.run import Run
    from neural.workflows.segment import load_run_pipeline

    with Run.open(select_run(run, root)) as opened:
        return load_run_pipeline(opened)


def _read_text(file: str) -> RawText:
    from neural.tasks.segmentation.reader import decode_text, read_text

    if file == "-":
        return decode_text(sys.stdin.buffer.read(), "standard input")
    return read_text(Path(file))


def _resolve_targets(files: tuple[str, ...], form: str, out: Path | None) -> list[Path | None]:
    """Output path of each result, None for the terminal. Errors are raised before any reading."""
    from neural.cli._errors import UserError

    if out is None or out == STANDARD_STREAM:
        return [None] * len(files)
    if len(files) == 1 and not out.is_dir():
        targets = [out]
    else:
        names = ["standard input" if file == "-" else Path(file).name for file in files]
        targets = [out / f"{name}{OUTPUT_SUFFIXES[form]}" for name in names]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise UserError(f"two of the files are called {duplicate}: use two output folders")
        if out.exists() and not out.is_dir():
            raise UserError(f"--out {out} is a file; for several files name a folder")
    inputs = {Path(file).absolute() for file in files if file != "-"}
    for target in targets:
        if target.absolute() in inputs:
            raise UserError(f"--out {target} is an input file; name another one")
        if len(files) == 1 and not target.absolute().parent.is_dir():
            raise UserError(f"there is no folder {target.parent} for --out")
    return list(targets)


def _write_output(target: Path, text: str, segmentation: SegmentationResult) -> None:
    from neural.cli._errors import CommandFailedError
    from neural.cli._formatting import relative_path
    from neural.core.errors import describe_os_error
    from neural.core.files import write_atomically

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, click.unstyle(text) + "\n", durable=False)
    except OSError as error:
        raise CommandFailedError(f"{target}: {describe_os_error(error)}") from None
    click.echo(
        f"{segmentation.raw.name}: {segmentation.summary}; {relative_path(target)}", err=True
    )


def _render(segmentation: SegmentationResult, form: str) -> str:
    if form == "html":
        return segmentation.to_html().rstrip("\n")
    if form == "json":
        return json.dumps(segmentation.to_dict(), ensure_ascii=False)
    return "\n".join(_format_segmentation(segmentation))


def _format_segmentation(segmentation: SegmentationResult) -> list[str]:
    """A sparkline of the boundary probabilities, then a line per segment.

    Column `P` is the probability that the segment begins there, `inside` the largest one in it.
    """
    from neural.cli import _formatting
    from neural.workflows.segment import max_pool

    lines = [f"{_formatting.style_heading(segmentation.raw.name)}  {segmentation.summary}"]
    if len(segmentation.document) > 1:
        # The first element has no gap before it.
        pooled_probabilities = max_pool(
            segmentation.probabilities[1:], _formatting.terminal_width() - 4
        )
        max_level = len(_formatting.BLOCKS) - 1
        lines.append(
            "  " + "".join(_formatting.BLOCKS[round(p * max_level)] for p in pooled_probabilities)
        )
    rows: list[tuple[str, ...]] = [("", "start", "end", segmentation.unit, "P", "inside", "")]
    rows += [
        (
            str(number),
            f"{segment.start:,}",
            f"{segment.end:,}",
            f"{segment.last - segment.first:,}",
            "" if segment.probability is None else f"{segment.probability:.2f}",
            f"{segment.max_inner_probability:.2f}" if segment.max_inner_probability else "",
            segment.title,
        )
        for number, segment in enumerate(segmentation.segments, start=1)
    ]
    return [*lines, *_format_rows(rows)]


def _format_rows(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of the table of segments: numbers right-aligned, the title last.

    The same lines as those of `format_table`, which imports rich and takes 0.5 ms per row.
    """
    from neural.cli._formatting import format_table
    from neural.core.escape import escape_controls_keep_colours

    # Titles come from the text, which may hold control sequences of a terminal.
    if any("\x1b" in title for *_, title in rows):
        return format_table(rows, right_aligned=(0, 1, 2, 3, 4, 5))
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "".join(f"  {cell:>{width}}" for cell, width in zip(numbers, widths, strict=True))
        + f"  {escape_controls_keep_colours(title)}".rstrip()
        for *numbers, title in rows
    ]


class _SegmentProgress:
    """Progress line of a long text on a terminal; prints nothing otherwise.

    Called with the number of finished elements and of all.
    """

    def __init__(self, raw: RawText) -> None:
        self.name = raw.name
        self.is_shown = len(raw.text) > MIN_PROGRESS_CHARACTERS and sys.stderr.isatty()

    def __enter__(self) -> _SegmentProgress:
        self.print_status("splitting the text and computing features")
        return self

    def __call__(self, done: int, count: int) -> None:
        self.print_status(f"{done / count:.0%} of {count:,} elements")

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def print_status(self, status: str) -> None:
        """Overwrite the previous status."""
        if self.is_shown:
            click.echo(f"\r\x1b[K{self.name}: {status}", nl=False, err=True)

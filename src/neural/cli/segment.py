"""`neural segment`: split texts into segments, with a boundary probability at every gap.

An element is a sentence, a line or a paragraph of the text; a gap is the place between two
elements. A segmenter is a trained model that predicts P, the probability that a segment begins at
an element. The segments of long texts are written while they are computed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from neural.cli._arguments import INPUT_FILE, RUN, FiniteFloatRange
from neural.cli._options import STANDARD_STREAM, json_option, out_option, runs_option
from neural.core.escape import escape_controls, escape_controls_keep_colours
from neural.core.sparkline import BLOCKS

if TYPE_CHECKING:
    from neural.tasks.segmentation.pipeline import SegmentationPipeline
    from neural.tasks.segmentation.segment_stream import SegmentOptions, TextSegment
    from neural.tasks.segmentation.text_source import TextSource
    from neural.workflows.segment_files import InputFile, TextInput
    from neural.workflows.segment_output import StreamedSegmentation

OUTPUT_SUFFIXES = {
    "text": ".parts.txt",
    "json": ".parts.json",
    "jsonl": ".parts.jsonl",
    "html": ".parts.html",
}
"""Suffixes appended to the names of the input files, for output into a folder."""
MIN_PROGRESS_BYTES = 500_000
"""Longer input shows its progress on a terminal."""
MIN_PROGRESS_FILES = 20
"""So do more files than these."""
PROGRESS_SECONDS = 0.1
"""Shortest time between two updates of the progress line."""
BAR_WIDTH = 24
MAX_SPOOLED_BYTES = 1 << 24
"""A longer JSON object is kept in a temporary file until it is complete."""

ALIASES = ("split",)
"""Other names of this command."""


class _MinElementsOption(click.Option):
    """`--min`, whose default in the help text is read from the file of the shipped segmenter."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER

        default = json.loads(SHIPPED_SEGMENTER.read_text(encoding="utf-8")).get("min_elements", 1)
        self.show_default = f"{default} for the shipped segmenter"
        return super().get_help_record(ctx)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER…", type=INPUT_FILE)
@click.option(
    "--run",
    metavar="RUN",
    type=RUN,
    help="A segmentation run; the segmenter shipped with the package by default.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of tokens of a segment. It is never exceeded.",
)
@click.option(
    "--min-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Smallest number of tokens, kept wherever --max-tokens allows it.",
)
@click.option(
    "--overlap",
    type=FiniteFloatRange(0),
    metavar="N",
    default=0,
    help="Tokens from before a segment that its text repeats; below 1, a share of --max-tokens.",
)
@click.option(
    "--tokenizer",
    metavar="FILE|words|chars",
    help="What counts tokens: words (the default), chars or a tokenizer.json.",
)
@click.option(
    "--min",
    "min_elements",
    cls=_MinElementsOption,
    type=click.IntRange(1),
    metavar="N",
    help="Smallest number of sentences, lines or paragraphs of a segment.",
)
@click.option(
    "--max",
    "max_elements",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of sentences, lines or paragraphs of a segment.",
)
@click.option(
    "--threshold",
    type=FiniteFloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability above which a segment begins; that of the segmenter by default.",
)
@click.option(
    "--unit",
    type=click.Choice(["sentences", "lines", "paragraphs"]),
    help="Elements of the text; as in the segmenter's training by default.",
)
@click.option(
    "--markup",
    type=click.Choice(["auto", "plain", "markdown", "html"]),
    default="auto",
    show_default=True,
    help="Markup of the texts; auto: by the file name, else by the text.",
)
@click.option(
    "--ignore-layout",
    is_flag=True,
    help="Segment by the words alone, not by headings, blank lines and other layout.",
)
@click.option(
    "--field",
    metavar="KEY",
    default="text",
    show_default=True,
    help="Key of the texts in the rows of .jsonl files.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "jsonl", "html"]),
    default="text",
    show_default=True,
    help="json: a line per text, with all gaps; jsonl: a line per segment; "
    "html: a page with the curve in the margin.",
)
@json_option("Short for --format json.", form=True)
@out_option(
    "File to write; a folder for several input files, or one .json or .jsonl file.",
    metavar="FILE|FOLDER",
    allow_stdout=True,
)
@runs_option()
def command(files: tuple[str, ...], **options: Any) -> None:
    """Split texts into segments by topic.

    \b
    $ neural segment notes.txt
    $ neural segment handbook/ --max-tokens 512 --overlap 32 --format jsonl --out chunks.jsonl
    $ neural segment book.txt --max-tokens 256 --tokenizer tokenizer.json --json
    $ neural segment rows.jsonl --field body --format jsonl
    $ neural segment book.txt --min 5 --max 60 --format html --out book.html
    $ cat talk.txt | neural segment - --format json | jq -r '.segments[].title'
    $ neural segment songs/*.txt --run songs --out cut/ --format json

    A folder stands for the texts in it. The segments joined are the text without any change;
    `start` and `end` count characters. The result is the most probable of all segmentations that
    respect --min, --max and --max-tokens. If one of several texts cannot be segmented, the others
    are, and the exit code is 1.
    """
    _segment(files, **options)


def _segment(
    names: tuple[str, ...],
    run: str | None,
    min_elements: int | None,
    max_elements: int | None,
    field: str,
    form: str,
    out: Path | None,
    root: Path,
    **options: Any,
) -> None:
    from neural.core.errors import CommandFailedError, NeuralError
    from neural.tasks.segmentation.segment_stream import SegmentOptions
    from neural.workflows.segment_files import find_input_files

    if min_elements and max_elements and min_elements > max_elements:
        raise NeuralError(f"--min {min_elements} must not be larger than --max {max_elements}")
    segment_options = SegmentOptions(
        min_elements=min_elements, max_elements=max_elements, **options
    )
    _ = segment_options.counter  # a missing tokenizer is an error before anything is read
    files = find_input_files(names, field)
    outputs = _resolve_outputs(files, form, out)
    pipeline = _load_pipeline(run, root)
    for note in pipeline.notes:
        click.echo(escape_controls(f"note: {note}"), err=True)
    with _Progress(files) as progress:
        job = _SegmentJob(pipeline, segment_options, form, progress)
        for output in outputs:
            job.write_output(output)
    if job.failures:
        raise CommandFailedError(
            f"{job.failures:,} of {job.texts:,} texts could not be segmented; see above"
        )


def _load_pipeline(run: str | None, root: Path) -> SegmentationPipeline:
    from neural.tasks.segmentation.pipeline import load_shipped_pipeline

    if run is None:
        return load_shipped_pipeline()
    from neural.cli._run_selection import select_run
    from neural.runs.run import Run
    from neural.workflows.segment import load_run_pipeline

    with Run.open(select_run(run, root)) as opened:
        return load_run_pipeline(opened)


@dataclass(frozen=True)
class _Output:
    """A file to write, or standard output, and the input files that go into it."""

    path: Path | None
    """None for standard output."""
    files: list[InputFile]

    @property
    def has_one_text(self) -> bool:
        return len(self.files) == 1 and not self.files[0].has_rows


def _resolve_outputs(files: list[InputFile], form: str, out: Path | None) -> list[_Output]:
    """Output of each file. Errors are raised before any reading."""
    from neural.core.errors import NeuralError

    is_single = len(files) == 1
    if form == "html" and any(file.has_rows for file in files):
        raise NeuralError("--format html is for files with one text, not for rows of .jsonl files")
    if out is None or out == STANDARD_STREAM:
        if form == "html" and not is_single:
            raise NeuralError("several pages need a folder: name a folder with --out")
        return [_Output(None, files)]
    is_one_file = not out.is_dir() and (
        is_single or (form in ("json", "jsonl") and out.suffix in (".json", ".jsonl"))
    )
    if is_one_file:
        outputs = [_Output(out, files)]
    else:
        if out.exists() and not out.is_dir():
            raise NeuralError(f"--out {out} is a file; for several files name a folder")
        names = [file.name for file in files]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise NeuralError(f"two of the files are called {duplicate}: use two output folders")
        outputs = [_Output(out / f"{file.name}{OUTPUT_SUFFIXES[form]}", [file]) for file in files]
    inputs = {file.path.absolute() for file in files if file.path is not None}
    for output in outputs:
        assert output.path is not None
        if output.path.absolute() in inputs:
            raise NeuralError(f"--out {output.path} is an input file; name another one")
        if is_one_file and not output.path.absolute().parent.is_dir():
            raise NeuralError(f"there is no folder {output.path.parent} for --out")
    return outputs


Write = Callable[[str], None]


class _SegmentJob:
    """Segments all texts and writes the results as they come.

    If there is one text, its errors are raised. Otherwise they are printed, and the job goes on.
    """

    def __init__(
        self,
        pipeline: SegmentationPipeline,
        options: SegmentOptions,
        form: str,
        progress: _Progress,
    ) -> None:
        self._pipeline, self._options, self._form = pipeline, options, form
        self._progress = progress
        self.texts = self.failures = 0

    def write_output(self, output: _Output) -> None:
        """Segment the texts of one output. Errors of its file are CommandFailedError."""
        from neural.cli._formatting import relative_path
        from neural.core.errors import CommandFailedError, describe_os_error

        texts, failures, summary = self.texts, self.failures, ""
        try:
            if not output.has_one_text:
                with _open_output(output) as write:
                    for file in output.files:
                        with self._catch_errors(is_file=True):
                            for text_input in file.read_texts():
                                with self._catch_errors():
                                    self._write_text(text_input, write, is_shared=True)
                texts, failures = self.texts - texts, self.failures - failures
                summary = f"{texts - failures:,} text{'s' * (texts - failures != 1)}"
            else:
                file = output.files[0]
                # An error discards the file, so it is caught outside.
                with self._catch_errors(), _open_output(output) as write:
                    text_input = next(file.read_texts())
                    summary = f"{file.name}: {self._write_text(text_input, write)}"
        except BrokenPipeError:
            raise
        except OSError as error:
            path = "standard output" if output.path is None else output.path
            raise CommandFailedError(f"{path}: {describe_os_error(error)}") from None
        if summary and output.path is not None:
            self._progress.print(f"{summary}; {relative_path(output.path)}")

    @contextmanager
    def _catch_errors(self, *, is_file: bool = False) -> Iterator[None]:
        """Count and print an error; a file whose rows cannot be read counts as one text."""
        from neural.core.errors import TaskError, format_error

        try:
            yield
        except TaskError as error:
            if not self._progress.has_many_texts:
                raise
            self.texts += is_file
            self.failures += 1
            self._progress.clear()
            click.echo(format_error(error), err=True)

    def _write_text(self, text_input: TextInput, write: Write, *, is_shared: bool = False) -> str:
        """Segment one text; returns a summary in one line.

        `is_shared`: other texts go into the same output, so that an object must not be incomplete.
        """
        from neural.workflows.segment_output import StreamedSegmentation

        self.texts += 1
        source = text_input.open()
        for note in source.notes:
            self._progress.print(f"note: {note}")
        if self._form == "html":
            return self._write_page(source, write)
        with self._progress.show_text(source.name):
            segmentation = StreamedSegmentation(
                source,
                self._pipeline,
                self._options,
                suffix=text_input.suffix,
                on_read=self._progress.advance,
            )
            if self._form == "jsonl":
                for line in segmentation.render_json_lines():
                    write(line)
            elif self._form == "json" and is_shared:
                _write_complete(segmentation.render_json(), write)
            elif self._form == "json":
                for piece in segmentation.render_json():
                    write(piece)
            else:
                lines = _format_segmentation(segmentation)
                write("\n" * (is_shared and self.texts > 1) + "\n".join(lines) + "\n")
        for note in segmentation.stream.notes:
            self._progress.print(f"note: {note}")
        return segmentation.summary

    def _write_page(self, source: TextSource, write: Write) -> str:
        """The HTML page of a text, which needs all of it in memory."""
        from neural.tasks.segmentation.reader import RawText
        from neural.workflows.segment import segment_text

        with self._progress.show_text(source.name):
            text = "".join(source.read_chunks(self._progress.advance))
            result = segment_text(
                RawText(source.name, text, source.encoding, source.notes),
                self._pipeline,
                self._options,
            )
            write(result.render_page())
        for note in result.raw.notes[len(source.notes) :]:
            self._progress.print(f"note: {note}")
        return result.summary


@contextmanager
def _open_output(output: _Output) -> Iterator[Write]:
    """Function that writes text to an output.

    The file of one text replaces an older one when it is complete. The file of several texts is
    written directly, so that what is there is not lost if the command is stopped.
    """
    from neural.core.files import open_atomic

    if output.path is None:
        # a file goes through a pipe as it is
        clean = escape_controls_keep_colours if sys.stdout.isatty() else str
        yield lambda text: click.echo(clean(text), nl=False)
        return
    output.path.parent.mkdir(parents=True, exist_ok=True)
    if output.has_one_text:
        with open_atomic(output.path, durable=False) as file:
            yield lambda text: _write_bytes(file, text)
        return
    with output.path.open("wb") as file:
        yield lambda text: _write_bytes(file, text)


def _write_bytes(file: BinaryIO, text: str) -> None:
    file.write(click.unstyle(text).encode())


def _write_complete(pieces: Iterator[str], write: Write) -> None:
    """Write the pieces of an object when all of them are there."""
    with tempfile.SpooledTemporaryFile(
        MAX_SPOOLED_BYTES, "w+", encoding="utf-8", newline=""
    ) as spooled:
        for piece in pieces:
            spooled.write(piece)
        spooled.seek(0)
        while piece := spooled.read(MAX_SPOOLED_BYTES):
            write(piece)


def _format_segmentation(segmentation: StreamedSegmentation) -> list[str]:
    """A sparkline of the boundary probabilities, then a line per segment.

    Column `P` is the probability that the segment begins there, `inside` the largest one in it.
    """
    from neural.cli import _formatting
    from neural.workflows.segment import max_pool

    unit = segmentation.stream.unit
    has_tokens = segmentation.stream.options.counter is not None
    rows = [
        ("", "start", "end", unit, *(["tokens"] if has_tokens else []), "P", "inside", ""),
        *(_format_segment(number, segment) for number, segment in enumerate(segmentation, start=1)),
    ]
    lines = [f"{_formatting.style_heading(segmentation.source.name)}  {segmentation.summary}"]
    if segmentation.element_count > 1:
        # The first element has no gap before it.
        pooled_probabilities = max_pool(
            segmentation.probabilities[1:], _formatting.terminal_width() - 4
        )
        max_level = len(BLOCKS) - 1
        lines.append("  " + "".join(BLOCKS[round(p * max_level)] for p in pooled_probabilities))
    return [*lines, *_format_rows(rows)]


def _format_segment(number: int, segment: TextSegment) -> tuple[str, ...]:
    return (
        str(number),
        f"{segment.start:,}",
        f"{segment.end:,}",
        f"{segment.last - segment.first:,}",
        *([] if segment.tokens is None else [f"{segment.tokens:,}"]),
        "" if segment.probability is None else f"{segment.probability:.2f}",
        f"{segment.max_inner_probability:.2f}" if segment.max_inner_probability else "",
        segment.title,
    )


def _format_rows(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of the table of segments: numbers right-aligned, the title last.

    The same lines as those of `format_table`, which imports rich and takes 0.5 ms per row.
    """
    from neural.cli._formatting import format_table

    # Titles come from the text, which may hold control sequences of a terminal.
    if any("\x1b" in title for *_, title in rows):
        return format_table(rows, right_aligned=tuple(range(len(rows[0]) - 1)))
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "".join(f"  {cell:>{width}}" for cell, width in zip(numbers, widths, strict=True))
        + f"  {escape_controls_keep_colours(title)}".rstrip()
        for *numbers, title in rows
    ]


class _Progress:
    """Progress line on a terminal: share and rate of all input. Prints no line otherwise."""

    def __init__(self, files: list[InputFile]) -> None:
        self.has_many_texts = len(files) > 1 or any(file.has_rows for file in files)
        self._size = sum(file.size for file in files)
        is_long = self._size > MIN_PROGRESS_BYTES or len(files) > MIN_PROGRESS_FILES
        self._is_shown = is_long and sys.stderr.isatty()
        self._done, self._name = 0, ""
        self._start = self._last_update = time.monotonic()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @contextmanager
    def show_text(self, name: str) -> Iterator[None]:
        """Show the name of a text while it is segmented."""
        self._name = name
        try:
            yield
        finally:
            self.clear()

    def advance(self, size: int) -> None:
        """Count bytes that were read."""
        self._done += size
        now = time.monotonic()
        if self._is_shown and now - self._last_update > PROGRESS_SECONDS:
            self._last_update = now
            click.echo(f"\r\x1b[K{self._format(now - self._start)}", nl=False, err=True)

    def _format(self, seconds: float) -> str:
        share = min(1.0, self._done / max(1, self._size))
        rate = self._done / 1e6 / max(seconds, 1e-9)
        filled = round(share * BAR_WIDTH)
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        return f"{bar} {share:4.0%} of {self._size / 1e6:,.1f} MB, {rate:.1f} MB/s  {self._name}"

    def print(self, message: str) -> None:
        """Print a message on standard error, not into the progress line."""
        self.clear()
        click.echo(escape_controls(message), err=True)

    def clear(self) -> None:
        """Remove the progress line, before other output."""
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)

"""`neural report`: runs (folders of one training each) as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from neural.cli._arguments import RUN
from neural.cli._formatting import format_count
from neural.cli._options import STANDARD_STREAM, out_option, runs_option


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]…", type=RUN)
@out_option("File to write.", default=Path("report.html"), allow_stdout=True)
@click.option("--title", help="Heading of the page; the names of the experiments by default.")
@click.option(
    "--pdf",
    is_flag=True,
    help="Also write a digest of a few pages as PDF beside it, printed by a browser.",
)
@click.option(
    "--plots",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the curves as PNG and SVG files.",
)
@runs_option()
def command(
    runs: tuple[str, ...], out: Path, title: str | None, pdf: bool, plots: Path | None, root: Path
) -> None:
    """Write a page about runs: settings, curves, attention, findings; the newest run by default.

    \b
    $ neural report
    $ neural report handbook-tiny -o tiny.html
    $ neural report seed-0 seed-1 seed-2 --plots plots --pdf

    The page is one file that works offline. Runs that differ in their seed alone are drawn as one
    line with a band; the folder of a sweep stands for all of its runs.
    """
    from neural.report.pdf_export import find_browser, print_to_pdf

    if pdf and out == STANDARD_STREAM:
        raise click.UsageError("--pdf is written beside the page: name a file with -o")
    if pdf:
        find_browser()  # raises BrowserError before the report is written
    from neural.cli._run_selection import select_runs
    from neural.report.run_report import render_report, write_run_page

    paths = select_runs(runs, root)
    if out == STANDARD_STREAM:
        click.echo(render_report(paths, title=title))
    else:
        write_run_page(paths, out, title=title)
        size = _format_size(out)
        click.echo(f"{out}  {size}, {format_count(paths, 'run')}; open it in a browser")
    if plots is not None:
        _draw_plots(paths, plots, to_stderr=out == STANDARD_STREAM)
    if pdf:
        pdf_path = out.with_suffix(".pdf")
        print_to_pdf(out, pdf_path)
        click.echo(f"{pdf_path}  {_format_size(pdf_path)}")


def _draw_plots(paths: list[Path], folder: Path, *, to_stderr: bool) -> None:
    """Draw the curves of the runs into `folder` and print what was drawn."""
    from contextlib import ExitStack

    from neural.report.plots import draw_plots
    from neural.runs.errors import translate_errors
    from neural.runs.run import Run

    with ExitStack() as stack, translate_errors(f"plots cannot be written in {folder}"):
        runs = [stack.enter_context(Run.open(path)) for path in paths]
        files, skipped = draw_plots(runs, folder)
    names = sorted({file.stem for file in files})
    click.echo(f"{folder}  {', '.join(names) or 'nothing'} as SVG and PNG", err=to_stderr)
    for reason in skipped:
        click.echo(f"not drawn: {reason}", err=to_stderr)


def _format_size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"

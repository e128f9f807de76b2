"""Write the report of runs as one HTML file, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from neural.report.pdf_export import find_browser, print_to_pdf
from neural.report.run_report import write_run_page
from neural.runs.errors import translate_errors
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, to_run_names
from neural.runs.run import Run
from neural.workflows.sweep import resolve_run_paths


def write_report(
    run: RunName | Sequence[RunName] | None = None,
    output: str | Path = "report.html",
    *,
    title: str | None = None,
    plots: str | Path | None = None,
    pdf: bool = False,
    runs: str | Path = DEFAULT_RUNS_DIR,
) -> Path:
    """Write a page about runs: settings, curves, attention, findings. Returns its path.

        neural.write_report("Digits", "digits.html")
        neural.write_report(["seed-0", "seed-1"], "seeds.html", plots="plots")

    `run` is a run, its name or path, a sweep, or a list of them; the newest run by default. The
    page is one file that works offline. `plots` is a folder for the curves as PNG and SVG files.
    `pdf` also writes a PDF beside the page, with a browser on this machine. RunError if a run
    cannot be read.
    """
    if pdf:
        find_browser()  # raises BrowserError before the report is written
    output = Path(output)
    paths = resolve_run_paths(to_run_names(run), Path(runs))
    write_run_page(paths, output, title=title)
    if plots is not None:
        from neural.report.plots import draw_plots  # imports matplotlib

        with ExitStack() as stack, translate_errors(f"plots cannot be written in {plots}"):
            draw_plots([stack.enter_context(Run.open(path)) for path in paths], Path(plots))
    if pdf:
        print_to_pdf(output, output.with_suffix(".pdf"))
    return output

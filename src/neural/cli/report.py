"""`neural report`: runs as one HTML file that opens anywhere."""

from __future__ import annotations

from pathlib import Path

import click

from neural.cli._arguments import RUN


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]…", type=RUN)
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"),
              show_default=True, help="The file to write.")  # fmt: skip
@click.option("--title", help="Its heading; the run's name if not said.")
@click.option("--pdf", is_flag=True, help="Print it too, beside it, through a browser on this machine.")
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write the curves as PNG and SVG files there.")  # fmt: skip
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
def command(runs: tuple[str, ...], out: Path, title: str | None, pdf: bool, plots: Path | None, root: Path) -> None:
    """Put runs on one page: settings, curves, attention over time, findings. The newest run if none is named.

    \b
    $ neural report
    $ neural report handbook-tiny -o tiny.html
    $ neural report seed-0 seed-1 seed-2 --plots plots --pdf

    The page is one file that needs no network. Runs that differ by their seed alone become one line with a band; a
    sweep's folder stands for all of its runs.
    """
    from neural.cli._mistakes import Refused, told
    from neural.views.browser import NoBrowser, browser, print_page

    try:
        if pdf:
            browser()   # said before the work, not after it
        with told():
            from neural.report import write_report

            paths = _paths(runs, root)
            write_report(paths, out, title=title)
            click.echo(f"{out}  {_size(out)}, {len(paths)} run{'s' * (len(paths) != 1)}; open it in a browser")
            if plots is not None:
                _draw(paths, plots)
        if pdf:
            printed = out.with_suffix(".pdf")
            print_page(out, printed)
            click.echo(f"{printed}  {_size(printed)}")
    except NoBrowser as problem:
        raise Refused(str(problem)) from None


def _paths(names: tuple[str, ...], root: Path) -> list[Path]:
    """Each run once; a sweep's folder is its runs."""
    from neural.sweep import TRIALS, find_either, opened
    from neural.tracking.trouble import RunError

    found: list[Path] = []
    for path in [find_either(name, root) for name in names or [None]]:
        if not (path / TRIALS).exists():
            found.append(path)
            continue
        inside = [path / row.run for row in opened(path).rows if row.run]
        if not inside:
            raise RunError(f"{path} has no run yet")
        found += inside
    return list(dict.fromkeys(found))


def _draw(paths: list[Path], folder: Path) -> None:
    from contextlib import ExitStack

    from neural.tracking.run import Run
    from neural.tracking.trouble import in_words
    from neural.views.plots import plots

    with ExitStack() as stack, in_words(f"plots cannot be written in {folder}"):
        made, left_out = plots([stack.enter_context(Run.open(path)) for path in paths], folder)
    click.echo(f"{folder}  {', '.join(sorted({one.stem for one in made})) or 'nothing'} as SVG and PNG")
    for one in left_out:
        click.echo(f"not drawn: {one}")


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"

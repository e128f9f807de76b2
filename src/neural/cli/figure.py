"""`neural figure`: a figure for a paper, from runs (folders of one training each)."""

from __future__ import annotations

import json
from pathlib import Path

import click

from neural.cli._arguments import RUN
from neural.cli._options import json_option, out_option, runs_option


class _FigureCommand(click.Command):
    """Lists the kinds of the registry in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section with the name and summary of every kind."""
        from neural.report.paper_figures import registry

        with formatter.section("Kinds"):
            formatter.write_dl([(name, registry.get(name).summary()) for name in registry.names()])


@click.command(cls=_FigureCommand)
@click.argument("runs", nargs=-1, metavar="[RUN]…", type=RUN)
@click.option("--kind", default="heads", show_default=True, help="What is drawn; see below.")
@click.option("--step", type=click.IntRange(0), help="Step of the maps; the last one by default.")
@click.option("--layer", type=click.IntRange(0), help="Layer of head, lines and image, from 0.")
@click.option("--head", type=click.IntRange(0), help="Head of head, lines and image, from 0.")
@click.option("--metric", "metrics", multiple=True, help="Metric of curves; repeat for several.")
@click.option(
    "--patch",
    nargs=2,
    type=click.IntRange(0),
    metavar="ROW COLUMN",
    help="Patch that attends, of image, from 0; CLS by default.",
)
@click.option(
    "--width",
    default="3.25in",
    show_default=True,
    metavar="LENGTH",
    help="Width in print, in in, cm, mm or pt.",
)
@click.option("--height", metavar="LENGTH", help="Height of curves; chosen by default.")
@out_option("File to write: .svg, .pdf or .png; named after the run by default.")
@runs_option()
@json_option("Print one JSON object.")
def command(
    runs: tuple[str, ...],
    kind: str,
    step: int | None,
    layer: int | None,
    head: int | None,
    metrics: tuple[str, ...],
    patch: tuple[int, int] | None,
    width: str,
    height: str | None,
    out: Path | None,
    root: Path,
    as_json: bool,
) -> None:
    """Draw a figure for a paper: heads, one head, roles or curves; the newest run by default.

    \b
    $ neural figure RUN --kind heads --step 360 -o heads.pdf --width 3.25in
    $ neural figure RUN --kind head --layer 2 --head 1 -o head.svg
    $ neural figure seed-0 seed-1 seed-2 --kind curves --metric valid/loss

    Text stays text in SVG and PDF; the same run gives the same bytes. Without --layer and --head,
    the head with a role whose weights are the most concentrated is drawn.
    """
    from neural.cli._run_selection import select_runs
    from neural.report.paper_figures import registry
    from neural.workflows.figure import figure

    registry.get(kind)  # an unknown kind is reported before runs are searched
    drawn = figure(
        select_runs(runs, root),
        kind,
        step=step,
        layer=layer,
        head=head,
        metrics=metrics,
        patch=patch,
        width=width,
        height=height,
    )
    path = drawn.save(out)
    inches = drawn.size_in_inches
    if as_json:
        described = {"kind": kind, "description": drawn.description, "inches": inches}
        click.echo(json.dumps({"path": str(path), **described, "bytes": path.stat().st_size}))
        return
    click.echo(f"{path}  {drawn.description}; {inches[0]:.2f} × {inches[1]:.2f} in")

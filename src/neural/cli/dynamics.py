"""`neural dynamics`: how focus and classifier learn together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neural.cli._arguments import PROGRAM


@click.command()
@click.argument("words", nargs=-1, metavar="FILE | C=… m=…", type=PROGRAM)
@click.option("--theory", is_flag=True, help="What the linear orthogonal setting predicts for C classes, m segments.")
@click.option("--alpha", metavar="A,A,…", help="With --theory: focuses to hold fixed; by default 0.1 to 0.9.")
@click.option("--rate", type=float, default=1.0, show_default=True,
              help="With --theory: the focus's learning rate over the classifier's.")  # fmt: skip
@click.option("--until", type=float, help="With --theory: the last time; by default where soft has a focus of 0.95.")
@click.option("--measure", is_flag=True, help="With --theory: gradient descent in small steps, to tell how far apart "
              "prediction and model are.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Draw into this folder.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1), help="With a file: trials at once; by default one per core.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="With a file: where runs go.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="All numbers as one JSON object.")
def command(
    words: tuple[str, ...], theory: bool, workers: int | None, runs: Path, as_json: bool, **asked: Any
) -> None:
    """Show how attention learns where to look: soft, hard, marginal and hybrid.

    \b
    $ neural dynamics examples/focus/compare.yaml
    $ neural dynamics runs/2026-11-16_05-00-00_compare
    $ neural dynamics --theory C=3 m=10
    $ neural dynamics --theory C=5 m=4 --measure
    $ neural dynamics --theory C=20 m=20 --alpha 0.2,0.4,0.6 --rate 2 --out drawn

    With a file like a sweep's: trains every paradigm of its grid, then says which claims the runs support; a folder
    goes on with what was begun. With --theory: what the linear orthogonal setting predicts, in closed form; times are
    steps × learning rate of plain gradient descent from zero.
    """
    if not theory and len(words) != 1:
        raise click.UsageError("name a comparison's file or folder, or say --theory C=… m=…")
    from neural.cli._mistakes import told

    with told():
        if theory:
            from neural.cli._theory import show

            show(words, as_json=as_json, **asked)
        else:
            from neural.cli._comparison import compare

            compare(words[0], workers=workers, runs=runs, as_json=as_json)

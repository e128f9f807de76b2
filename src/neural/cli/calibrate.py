"""`neural calibrate`: make a run's probabilities mean what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import RUN

if TYPE_CHECKING:
    from neural.calibrating import Outcome


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--data", metavar="FILE|FOLDER",
              help="Documents with known parts, not learned from; the run's validation part if not said.")  # fmt: skip
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Parts that take turns to judge.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Which documents go together.")
@click.option("--allow-duplicates", is_flag=True, help="Take documents that the run learned from, too.")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="What is saved, for machines.")
def command(
    run: str | None, data: str | None, folds: int, seed: int, allow_duplicates: bool, root: Path, as_json: bool
) -> None:
    """Calibrate a run's probabilities: compare the ways to and keep the best; the newest run if none is named.

    \b
    $ neural calibrate articles
    $ neural calibrate articles --data more_notes/

    Every method is fitted to some documents and judged on the others, in turn; the least log loss wins, `none` is among
    them. Saved in the run folder with a threshold and reliability diagrams; `segment`, `predict` and `evaluate` use it.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.calibrating import calibrate
        from neural.experiments import find_run
        from neural.tasks.cutting.calibration_file import FILE
        from neural.tracking.run import Run

        with Run.open(find_run(run, root)) as found:
            outcome = calibrate(found, data, folds=folds, seed=seed, allow_duplicates=allow_duplicates)
            if as_json:
                click.echo(json.dumps(json.loads((found.path / FILE).read_text(encoding="utf-8"))))
            else:
                click.echo("\n".join(_page(outcome)))


def _page(outcome: Outcome) -> list[str]:
    from neural.cli import _text

    kept = outcome.calibrated
    lines = [f"{_text.heading(outcome.cutter.name)}  on {outcome.held.where}"]
    lines += [f"  note: {one}" for one in outcome.held.remarks]
    for title, choice in (("P(a part begins)", kept.boundary), ("confidence in the label", kept.label)):
        if choice is not None:
            elements = f"{choice.elements:,} elements of {choice.documents:,} documents"
            lines += ["", f"{_text.heading(title)}  {elements}", *(f"  {one}" for one in choice.table().splitlines())]
    lines += ["", f"threshold {kept.threshold:.3g}: the best F1 on these documents, {kept.f1:.3f}"]
    files = ", ".join(file.name for file in outcome.files)
    return [*lines, f"saved: {files} in {_text.near(outcome.files[0].parent)}"]

"""`neural caption`: what a captioner says about pictures, and where it looks for every word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN

if TYPE_CHECKING:
    from neural.captioning import Caption

SHOWN = 5
"""Captions that are printed word by word."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.argument("data", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--pictures", type=click.IntRange(1), metavar="N", help="The first so many; all if not said.")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help=f"Draw the first {SHOWN} there, word by word.")  # fmt: skip
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines: words, regions and weights.")
def command(run: str | None, data: Path | None, pictures: int | None, out: Path | None, runs: Path,
            as_json: bool) -> None:  # fmt: skip
    """Say what is in pictures, word by word; of the run's test pictures, or of regions in an .npz file.

    \b
    $ neural caption
    $ neural caption captions-lvml -o words
    $ neural caption RUN own.npz --json

    The newest run if none is named. `circle@5 0.98`: `circle` was looked for in region 5, by a weight of 0.98.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.captioning import captions, drawn
        from neural.experiments import find_run

        found = captions(find_run(run, runs), data, count=pictures)
        files = []
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            files = [drawn(one, out) for one in found[:SHOWN]]
        click.echo(json.dumps(_as_json(found), ensure_ascii=False) if as_json else "\n".join(_page(found, files)))


def _page(found: list[Caption], files: list[Path]) -> list[str]:
    lines = []
    for one in found[:SHOWN]:
        mark = {True: "right", False: "wrong", None: ""}[one.right]
        lines.append(f"picture {one.number}  {one.text}" + (f"  ({mark})" if mark else ""))
        lines.append("    " + "  ".join(f"{word}@{region} {weight:.2f}" for word, region, weight in _words(one)))
    more = len(found) - SHOWN
    lines += [f"and {more} more"] if more > 0 else []
    known = [one for one in found if one.right is not None]
    if known:
        lines += ["", f"{sum(bool(one.right) for one in known)} of {len(known)} captions are, word for word, as given"]
        about = [(region, place) for one in known for (_, region, _), place in zip(_words(one), one.looked.places,
                 strict=False) if place is not None]  # fmt: skip
        if about:
            share = sum(region == place for region, place in about) / len(about)
            lines.append(f"of their words that are about a region, {share:.1%} were looked for there")
    return lines + [f"drawn: {file}" for file in files]


def _words(one: Caption) -> list[tuple[str, int, float]]:
    """Each word, the region with the most of the gaze, and how much that is."""
    rows = zip(one.looked.words, one.looked.focus, strict=True)
    return [(word, int(focus.argmax()), float(focus.max())) for word, focus in rows]


def _as_json(found: list[Caption]) -> list[dict[str, Any]]:
    keys = ("word", "region", "weight")
    return [
        {"picture": one.number, "caption": one.text, "right": one.right,
         "words": [dict(zip(keys, word, strict=True)) for word in _words(one)]}
        for one in found
    ]  # fmt: skip

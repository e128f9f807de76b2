"""`neural caption`: captions of images, with the region attended to for each word.

A region is a part of an image, given as a feature vector and numbered from 0; the model attends to
regions. Words of a reference caption may have a reference region: the one that they describe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN
from neural.cli._options import json_option, out_option, runs_option
from neural.core.escape import escape_controls, escape_json

if TYPE_CHECKING:
    from neural.workflows.caption import Caption

MAX_SHOWN = 5
"""Captions that are printed word by word."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.argument(
    "data", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--pictures", type=click.IntRange(1), metavar="N", help="Only the first N; all by default."
)
@out_option(
    f"Folder for plots of the first {MAX_SHOWN} captions, word by word.",
    metavar="FOLDER",
    is_folder=True,
)
@runs_option()
@json_option("Print JSON with words, regions and weights.")
def command(
    run: str | None,
    data: Path | None,
    pictures: int | None,
    out: Path | None,
    root: Path,
    as_json: bool,
) -> None:
    """Caption the run's test images, or image regions in an .npz file; the newest run by default.

    \b
    $ neural caption
    $ neural caption captions-lvml -o words
    $ neural caption RUN own.npz --json

    `circle@5 0.98`: while writing `circle` the model attended to region 5 with a weight of 0.98.
    """
    from neural.cli._run_selection import select_run
    from neural.workflows.caption import generate_captions, write_caption_plot

    captions = generate_captions(select_run(run, root), data, count=pictures)
    files = []
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        files = [write_caption_plot(caption, out) for caption in captions[:MAX_SHOWN]]
    click.echo(
        escape_json(json.dumps(_captions_to_json(captions), ensure_ascii=False))
        if as_json
        else "\n".join(_format_captions(captions, files))
    )


def _format_captions(captions: list[Caption], files: list[Path]) -> list[str]:
    lines = []
    for caption in captions[:MAX_SHOWN]:
        mark = {True: "  (correct)", False: "  (wrong)", None: ""}[caption.is_exact_match]
        lines.append(f"picture {caption.picture_index}  {escape_controls(caption.text)}{mark}")
        words = (
            f"{escape_controls(word)}@{region} {weight:.2f}"
            for word, region, weight in _word_regions(caption)
        )
        lines.append("    " + "  ".join(words))
    hidden_count = len(captions) - MAX_SHOWN
    lines += [f"and {hidden_count} more"] if hidden_count > 0 else []
    referenced = [caption for caption in captions if caption.is_exact_match is not None]
    if referenced:
        match_count = sum(bool(caption.is_exact_match) for caption in referenced)
        lines += [
            "",
            f"{match_count} of {len(referenced)} captions match the reference word for word",
        ]
        region_pairs = [
            (region, reference_region)
            for caption in referenced
            for (_, region, _), reference_region in zip(
                _word_regions(caption), caption.attention.regions, strict=False
            )
            if reference_region is not None
        ]
        if region_pairs:
            share = sum(region == reference for region, reference in region_pairs) / len(
                region_pairs
            )
            lines.append(
                f"{share:.1%} of the words that are about a region attend most to that region"
            )
    return lines + [f"drawn: {file}" for file in files]


def _word_regions(caption: Caption) -> list[tuple[str, int, float]]:
    """Each word, the region with the largest attention weight, and that weight."""
    rows = zip(caption.attention.words, caption.attention.focus, strict=True)
    return [(word, int(weights.argmax()), float(weights.max())) for word, weights in rows]


def _captions_to_json(captions: list[Caption]) -> list[dict[str, Any]]:
    keys = ("word", "region", "weight")
    return [
        {
            "picture": caption.picture_index,
            "caption": caption.text,
            "is_exact_match": caption.is_exact_match,
            "words": [dict(zip(keys, word, strict=True)) for word in _word_regions(caption)],
        }
        for caption in captions
    ]

"""Does layout that says nothing, or misleads, make the shipped segmenter worse?

    python benchmarks/misleading_layout.py --data FOLDER [--quick]

--data (NEURAL_DATA by default) has textbook sections, openstax/*.jsonl. Each is written in styles
without headings (rendering.py) and segmented twice: with its layout, and with the layout ignored.
Prints the mean Pk of both and their difference with a 95 % interval over documents.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.pipeline import SegmentationPipeline, load_shipped_pipeline
from neural.tasks.segmentation.rendering import DocumentPart, render_document

STYLES = ("flat", "lines", "paragraphs", "wrapped", "misleading")
MIN_PARTS = 3
EVERY = 3
"""Every third section is used."""


def read_sections(folder: Path) -> list[tuple[str, list[DocumentPart]]]:
    """Title and parts of all sections with enough parts."""
    sections = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            parts = [
                DocumentPart(title=part["title"], level=1, paragraphs=part["paragraphs"])
                for part in row["parts"]
                if part["paragraphs"]
            ]
            if len(parts) >= MIN_PARTS:
                sections.append((row["title"], parts))
    return sections


def measure_style(
    style: str, sections: list[tuple[str, list[DocumentPart]]], pipeline: SegmentationPipeline
) -> dict[str, Any]:
    """Mean Pk with layout and without, and the difference with half the width of its interval."""
    pk, scores = Pk(), []
    for seed, (title, parts) in enumerate(sections):
        rendered = render_document(title, parts, style, np.random.default_rng(seed))
        document = SegmentationDocument.from_text(rendered.text, markup="plain")
        assert document.offsets is not None
        truth = rendered.mark_elements(document.offsets)
        scores.append(
            [
                pk.score_document(truth, pipeline.segment(shown))
                for shown in (document, document.without_layout())
            ]
        )
    kept, ignored = np.array(scores).T
    difference = kept - ignored
    return {
        "documents": len(scores),
        "kept": kept.mean(),
        "ignored": ignored.mean(),
        "difference": difference.mean(),
        "half_width": 1.96 * difference.std(ddof=1) / np.sqrt(len(scores)),
    }


def main() -> None:
    """Print a line per style."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NEURAL_DATA", ".")))
    parser.add_argument("--quick", action="store_true", help="few documents: does it run?")
    options = parser.parse_args()
    sections = read_sections(options.data / "openstax")[:: 40 if options.quick else EVERY]
    if not sections:
        parser.error(f"{options.data} has no openstax/*.jsonl")
    pipeline = load_shipped_pipeline()
    for style in STYLES:
        row = measure_style(style, sections, pipeline)
        print(
            f"{style:11} {row['documents']} documents: Pk with layout {row['kept']:.3f}, "
            f"ignored {row['ignored']:.3f}, difference {row['difference']:+.3f} "
            f"± {row['half_width']:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Segmentation of texts unlike those that a model was trained on: scores by domain, with peers.

    python benchmarks/segmentation_domains.py --data FOLDER [--corpora FOLDER]
        [--segmenter FILE.json] [--segmenters DOMAIN=FILE.json …] [--structured FOLDER]
        [--diagrams FOLDER] [--max-documents 60] [--json] [--quick]

--data (NEURAL_DATA by default) has the domains `choi` (choi/3/3-11/*.ref), `wikipedia` (wiki/*.ref)
and `textbooks` (openstax/*.jsonl); every folder of .jsonl files in --corpora is a further domain.
Documents have neither headings nor blank lines here.

Rows are the shipped segmenter, every untrained method, and chunkers of other packages that are
installed; these get the mean length of the true segments as their size (chunkers.py). --segmenter
adds a saved pipeline, --segmenters one for a domain, such as a model that was trained without it.
Columns are Pk and WindowDiff (low is better), boundary F1 and boundary similarity B, with 95 %
intervals over documents; then the smooth calibration error beside that of a perfect model.
--diagrams writes a reliability diagram for every domain.

--structured has the folders markdown/, html/ and plain/ (reStructuredText or plain text) with
files whose headings are the truth; see authors_headings.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from authors_headings import measure_structured
from chunkers import list_missing, run_chunkers

from neural.tasks.segmentation.baselines import registry as baselines
from neural.tasks.segmentation.calibration_error import compute_reliability
from neural.tasks.segmentation.collection import load_documents
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import (
    SegmentationPipeline,
    load_pipeline,
    load_shipped_pipeline,
)
from neural.tasks.segmentation.score_table import run_baselines, score_segmenters
from neural.tasks.segmentation.smooth_calibration_error import estimate_smooth_error
from neural.tasks.segmentation.source_clusters import SourceClusters

GOALS = {
    "choi: Pk": 0.05,
    "wikipedia: Pk": 0.31,
    "worst domain: Pk / nothing": 1.0,
    "worst domain: Pk / best untrained": 1.0,
    "worst kind: 1 - F1 at headings": 0.05,
}
DATA_DOMAINS = {"choi": "choi/3/3-11", "wikipedia": "wiki", "textbooks": "openstax"}
"""Folders of --data by domain."""
SCORES = {
    "pk": "Pk",
    "window_diff": "WindowDiff",
    "boundary_f1": "F1",
    "boundary_similarity": "B",
}
DEFAULT_MAX_DOCUMENTS = 60
MAX_ELEMENTS = 1000
"""Longer documents, such as books, are cut after the last segment that fits."""


def load_domains(
    data: Path, corpora: Path | None, max_documents: int
) -> Iterator[tuple[str, list[SegmentationDocument]]]:
    """Name and documents of every domain that is there; of many, every n-th one."""
    folders = {name: data / folder for name, folder in DATA_DOMAINS.items()}
    for folder in sorted(corpora.iterdir()) if corpora else ():
        # A corpus of a domain that --data has may be what a model was trained on.
        if folder.is_dir() and any(folder.glob("*.jsonl")):
            folders.setdefault(folder.name, folder)
    for name, folder in folders.items():
        if not folder.is_dir():
            print(f"{name} is not measured: there is no {folder}", file=sys.stderr)
            continue
        yield name, [cut_document(document) for document in load_sample(folder, max_documents)]


def load_sample(folder: Path, max_documents: int) -> list[SegmentationDocument]:
    """Every n-th document with several segments of a folder, in the order of the files."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        documents = [document for document in load_documents(folder) if document.boundaries.any()]
        return [documents[index] for index in choose_evenly(len(documents), max_documents)]
    # Splitting all texts of a large corpus into sentences would take minutes.
    lines = [
        line
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if sum(bool(part["paragraphs"]) for part in json.loads(line)["parts"]) > 1
    ]
    with tempfile.TemporaryDirectory() as temporary:
        sample = Path(temporary) / "sample.jsonl"
        chosen = [lines[index] for index in choose_evenly(len(lines), max_documents)]
        sample.write_text("\n".join(chosen), encoding="utf-8")
        return load_documents(sample)


def choose_evenly(count: int, max_chosen: int) -> list[int]:
    """At most `max_chosen` of the indices below `count`, at equal distances."""
    return np.unique(np.linspace(0, count - 1, max_chosen).round().astype(int)).tolist()


def cut_document(document: SegmentationDocument) -> SegmentationDocument:
    """The first segments of a document, with at most MAX_ELEMENTS elements."""
    if len(document) <= MAX_ELEMENTS:
        return document
    starts = np.flatnonzero(document.boundaries)
    end = int(max(starts[starts <= MAX_ELEMENTS], default=MAX_ELEMENTS))
    return replace(
        document,
        elements=document.elements[:end],
        boundaries=document.boundaries[:end],
        labels=None,
        offsets=None,
        text=None,
        layout=None,
        sources=None,
    )


def measure_domain(
    name: str,
    documents: Sequence[SegmentationDocument],
    pipelines: dict[str, SegmentationPipeline],
    diagrams: Path | None,
) -> dict[str, Any]:
    """Scores of all segmenters with intervals, calibration, and sizes of the chunkers."""
    truths = [document.boundaries for document in documents]
    probabilities = {
        segmenter: [pipeline.probabilities(document) for document in documents]
        for segmenter, pipeline in pipelines.items()
    }
    predictions = {
        segmenter: [pipeline.decode(p) for p in probabilities[segmenter]]
        for segmenter, pipeline in pipelines.items()
    }
    untrained = run_baselines([document.elements for document in documents], truths)
    chunked = {chunker: (size, boundaries) for chunker, size, boundaries in run_chunkers(documents)}
    first, *others = predictions
    clusters = SourceClusters.from_documents(documents)
    table = score_segmenters(
        truths,
        predictions[first],
        name=first,
        baselines={
            **{segmenter: predictions[segmenter] for segmenter in others},
            **untrained,
            **{chunker: boundaries for chunker, (_, boundaries) in chunked.items()},
        },
        clusters=clusters,
    )
    if diagrams is not None:
        draw_diagram(name, probabilities, truths, pipelines, diagrams)
    return {
        "documents": len(documents),
        "elements": sum(map(len, documents)),
        "segments": int(sum(boundaries.sum() + 1 for boundaries in truths)),
        "intervals over": str(clusters),
        "sizes": {chunker: size for chunker, (size, _) in chunked.items() if size is not None},
        "rows": {
            segmenter: {
                score: [row[score].value, row[score].low, row[score].high] for score in SCORES
            }
            for segmenter, row in table.rows.items()
        },
        "calibration": {
            segmenter: estimate_smooth_error(p, truths).to_dict()
            for segmenter, p in probabilities.items()
        },
    }


def draw_diagram(
    name: str,
    probabilities: dict[str, list[np.ndarray]],
    truths: Sequence[np.ndarray],
    pipelines: dict[str, SegmentationPipeline],
    folder: Path,
) -> None:
    """Write NAME.png: observed frequency by predicted probability, for every pipeline."""
    from neural.report.reliability_plot import draw_reliability

    folder.mkdir(parents=True, exist_ok=True)
    hits = np.concatenate([truth[1:] for truth in truths]).astype(float)
    documents = np.repeat(np.arange(len(truths)), [len(truth) - 1 for truth in truths])
    for segmenter, arrays in probabilities.items():
        diagram = compute_reliability(np.concatenate([p[1:] for p in arrays]), hits, documents)
        file = name if segmenter == next(iter(pipelines)) else f"{name}_{segmenter}"
        draw_reliability(
            {pipelines[segmenter].calibration.name(): diagram},
            folder / file.replace(" ", "_"),
            title=f"P(a segment begins), {name}, {segmenter}",
            formats=("png",),
        )


def compute_ratios(domains: dict[str, Any], structured: dict[str, Any]) -> dict[str, float]:
    """Figures of the shipped segmenter that have goals."""
    ratios = {
        f"{name}: Pk": domains[name]["rows"]["shipped"]["pk"][0]
        for name in domains
        if f"{name}: Pk" in GOALS
    }
    to_nothing, to_best = [], []
    for domain in domains.values():
        shipped = domain["rows"]["shipped"]["pk"][0]
        untrained = {name: domain["rows"][name]["pk"][0] for name in baselines.names()}
        to_nothing.append(shipped / untrained["nothing"])
        to_best.append(shipped / min(untrained.values()))
    if domains:
        ratios["worst domain: Pk / nothing"] = max(to_nothing)
        ratios["worst domain: Pk / best untrained"] = max(to_best)
    if structured:
        ratios["worst kind: 1 - F1 at headings"] = 1 - min(
            kind["layout kept"]["f1"] for kind in structured.values()
        )
    return ratios


def format_results(results: dict[str, Any]) -> str:
    """The results as text."""
    lines = []
    for name, domain in results["domains"].items():
        lines += [
            f"{name}: {domain['documents']} documents, {domain['elements']:,} sentences, "
            f"{domain['segments']:,} segments; 95 % intervals over {domain['intervals over']}",
            f"  {'':22}" + "".join(f"{header:>24}" for header in SCORES.values()),
        ]
        for segmenter, row in domain["rows"].items():
            cells = "".join(f"{format_interval(*interval):>24}" for interval in row.values())
            lines.append(f"  {segmenter.replace('_', ' '):22}{cells}")
        for segmenter, error in domain["calibration"].items():
            null = error["perfect_model"]
            lines.append(
                f"  smooth calibration error, {segmenter}: {error['value']:.3f}; a perfect model "
                f"{null['value']:.3f} ({null['low']:.3f} … {null['high']:.3f} in 90 % of cases)"
            )
        sizes = ", ".join(f"{chunker} {size:,}" for chunker, size in domain["sizes"].items())
        lines += [f"  sizes in characters: {sizes}", ""] if sizes else [""]
    for kind, figures in results["structured"].items():
        texts = [
            f"{layout} {scores['f1']:.3f} (precision {scores['precision']:.3f}, "
            f"recall {scores['recall']:.3f})"
            for layout, scores in figures.items()
            if isinstance(scores, dict)
        ]
        lines.append(
            f"{kind}: {figures['files']} files, {figures['headings']:,} headings; boundary F1 "
            + ", ".join(texts)
        )
    lines += [
        f"  {name:40} {value:7.3f}   goal {GOALS[name]:g}"
        for name, value in results["ratios"].items()
    ]
    return "\n".join([*lines, *list_missing()])


def format_interval(value: float, low: float, high: float) -> str:
    """`0.350 (0.336 … 0.365)`; without an interval where there is none."""
    ends = f"({low:.3f} … {high:.3f})" if np.isfinite(low) else ""
    return f"{value:.3f} {ends:15}"


def main() -> None:
    """Print a table or JSON; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NEURAL_DATA", ".")))
    parser.add_argument("--corpora", type=Path, help="folder with a folder of .jsonl per domain")
    parser.add_argument("--domains", nargs="+", help="only these domains")
    parser.add_argument("--segmenter", type=Path, help="a saved pipeline, for every domain")
    parser.add_argument(
        "--segmenters", nargs="+", default=[], metavar="DOMAIN=FILE", help="one for a domain"
    )
    parser.add_argument("--structured", type=Path, help="folder with markdown/, html/ and plain/")
    parser.add_argument("--diagrams", type=Path, help="folder for reliability diagrams")
    parser.add_argument("--max-documents", type=int, default=DEFAULT_MAX_DOCUMENTS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few documents: does it run?")
    options = parser.parse_args()
    max_documents = 4 if options.quick else options.max_documents
    by_domain = dict(pair.partition("=")[::2] for pair in options.segmenters)
    shipped = load_shipped_pipeline()
    results: dict[str, Any] = {"domains": {}, "structured": {}}
    for name, documents in load_domains(options.data, options.corpora, max_documents):
        if options.domains and name not in options.domains:
            continue
        pipelines = {"shipped": shipped}
        if options.segmenter:
            pipelines[options.segmenter.stem] = load_pipeline(options.segmenter)
        if name in by_domain:
            pipelines[f"without {name}"] = load_pipeline(Path(by_domain[name]))
        start = time.perf_counter()
        results["domains"][name] = measure_domain(name, documents, pipelines, options.diagrams)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.structured:
        results["structured"] = measure_structured(options.structured, max_documents)
    if not results["domains"] and not results["structured"]:
        sys.exit("no documents in --data (NEURAL_DATA), --corpora or --structured")
    results["ratios"] = compute_ratios(results["domains"], results["structured"])
    print(
        json.dumps(results | {"goals": GOALS}, indent=1)
        if options.json
        else format_results(results)
    )
    missed = [name for name, value in results["ratios"].items() if value > GOALS[name]]
    sys.exit(bool(missed) and not options.quick)


if __name__ == "__main__":
    main()

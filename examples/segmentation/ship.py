"""Train the segmenter that comes with the package, on the documents of corpora.py.

    python examples/segmentation/ship.py CORPORA [--out FOLDER] [--leave-out DOMAIN …] [--quick]

Two kinds of documents are used: documents with the parts that their authors gave them, and
documents composed of passages of different documents, as Choi did. Every document is shown in one
of three ways: as sentences without any layout, as a text whose layout marks the parts (headings,
blank lines), or as a text whose layout says nothing about them or misleads. So the model learns to
trust layout where it can be trusted, and to do without it.

Documents are divided by their source: some sources are for training, others choose the checkpoint,
others the calibration and the threshold. `--leave-out` trains without a domain, to measure how well
the model does on a domain that it has never seen.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from neural.optim.catalogue import CATALOGUE
from neural.tasks.segmentation.calibration_selection import choose_calibration, flatten_documents
from neural.tasks.segmentation.collection import DocumentCollection
from neural.tasks.segmentation.decoding import decode_boundaries, decode_expected_pk
from neural.tasks.segmentation.document import SegmentationDocument, join_segments
from neural.tasks.segmentation.feature_cache import compute_features_batch
from neural.tasks.segmentation.inference import (
    boundary_probabilities,
    class_probabilities,
    compute_logits,
)
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, save_pipeline
from neural.tasks.segmentation.probability import probabilities_to_margins
from neural.tasks.segmentation.rendering import STYLES, render_document
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.tasks.segmentation.task import Segmentation
from neural.tasks.segmentation.text_splitting import find_elements
from neural.training.engine import TrainingProgress, fit
from neural.training.load_model import load_best_model
from neural.workflows.train import create_run

FEATURES = ("meaning", "cohesion", "novelty", "chains", "openings", "vocabularies", "layout")
SPLIT_SHARES = {"train": 0.76, "valid": 0.08, "test": 0.16}
"""Shares of the sources of a domain; the test split calibrates."""
MIN_SOURCES = 6
"""A domain with fewer sources is divided by documents."""
DOCUMENTS_PER_DOMAIN = 1_600
DOCUMENTS_PER_SOURCE = 300
COMPOSED_SHARE = 0.5
"""Number of composed documents, as a share of the others."""
QUICK_DOCUMENTS = 40
MAX_SOURCE_SHARE = 3
"""A source has at most this many times the documents that it would have if all had the same."""
WINDOW_SENTENCES = 240
"""Longer documents are divided into windows of about this size."""
MAX_WINDOWS = 3
"""Windows of one document that are used, from its start."""
MAX_PARTS = 60
"""Parts of a document that are read."""
MIN_SENTENCES = 12
STYLE_SHARES = {
    "sentences": 0.45,
    "flat": 0.08,
    "lines": 0.03,
    "paragraphs": 0.09,
    "wrapped": 0.04,
    "misleading": 0.07,
    "wide_gaps": 0.03,
    "part_gaps": 0.03,
    "markdown": 0.06,
    "html": 0.03,
    "underlined": 0.03,
    "numbered": 0.02,
    "capitals": 0.02,
    "titled": 0.01,
    "compact": 0.01,
}
"""How documents are shown: `sentences` without layout, else a style of rendering.py."""
COMPOSED_STYLE_SHARES = {
    "sentences": 0.6,
    "flat": 0.07,
    "part_gaps": 0.14,
    "paragraphs": 0.06,
    "wrapped": 0.03,
    "misleading": 0.1,
}
COMPOSED_KINDS = (
    # segments of a document, elements of a segment, share
    ((6, 12), (3, 11), 0.55),
    ((3, 9), (6, 40), 0.3),
    ((3, 9), (2, 6), 0.15),
)
SAME_DOMAIN_SHARE = 0.6
"""Share of composed documents whose passages are all of one domain, which is harder."""
COARSE_SHARE = 0.5
"""Share of the documents without headings in which only parts of the top level are segments."""
PASSAGE_FROM_START_SHARE = 0.4
"""Share of composed passages that begin where their document begins."""
MIN_STD = 0.03
"""A column with a smaller standard deviation is disabled: elsewhere it would be noise."""
SMOOTH_CALIBRATIONS = ("temperature", "platt", "beta")
"""Strictly monotonic methods: they keep the order of the gaps."""
THRESHOLDS = tuple(np.arange(0.1, 0.61, 0.05).round(2).tolist())
PROBE_THRESHOLDS = tuple(np.arange(0.35, 0.81, 0.05).round(2).tolist())
SETTINGS: dict[str, Any] = {
    "data": ".",
    "features": FEATURES,
    "elements": "sentences",
    "name": "shipped",
    "learn": "boundaries",
    "max_elements": 128,
    "model": {
        "hidden_dim": 64,
        "num_layers": 1,
        "dropout": 0.3,
        "input_dropout": 0.1,
        "attention_type": "localized",
        "window_size": 15,
        "attention_heads": 4,
        "attention_dim": 64,
        "attention_dropout": 0.1,
    },
    "training": {
        "batch_size": 32,
        "learning_rate": 3e-3,
        "scheduler": "cosine",
        "clip_norm": 1.0,
        "weight_decay": 0.02,
        "epochs": 6.0,
        "warmup_steps": 60,
        "seeds": 2,
    },
    "tracking": {"track_every": 0},
}

Parts = list[dict[str, Any]]
"""Parts of a document: `title`, `level` and `paragraphs` of each."""


@dataclass(frozen=True)
class SourceDocument:
    """A document of a corpus, or a window of a long one."""

    domain: str
    source: str
    title: str
    parts: Parts
    segments: list[list[str]]
    """Sentences of each part."""

    @property
    def sentences(self) -> list[str]:
        """Sentences of all parts."""
        return [sentence for segment in self.segments for sentence in segment]


def read_domain(folder: Path, limit: int) -> list[SourceDocument]:
    """Documents of a domain: at most `limit`, spread evenly over all sources."""
    paths = sorted(folder.glob("*.jsonl"))
    per_source = min(DOCUMENTS_PER_SOURCE, -(-MAX_SOURCE_SHARE * limit // len(paths)))
    documents = []
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        windows = [
            window
            for line in take_evenly(lines, per_source)
            for window in cut_windows(folder.name, path.stem, json.loads(line))
        ]
        documents += take_evenly(windows, per_source)
    return take_evenly(documents, limit)


def take_evenly(items: Sequence[Any], limit: int) -> list[Any]:
    """At most `limit` of the items, at equal distances."""
    if len(items) <= limit:
        return list(items)
    return [items[index] for index in np.linspace(0, len(items) - 1, limit).astype(int)]


def cut_windows(domain: str, source: str, row: dict[str, Any]) -> list[SourceDocument]:
    """A document, or a few windows of a long one; each with two or more parts.

    A window ends in the middle of a part if the part is long; the rest of the part then begins the
    next window, without its title.
    """
    windows: list[SourceDocument] = []
    parts: Parts = []
    segments: list[list[str]] = []

    def close_window() -> None:
        nonlocal parts, segments
        if len(parts) > 1 and sum(map(len, segments)) >= MIN_SENTENCES:
            windows.append(SourceDocument(domain, source, row["title"], parts, segments))
        parts, segments = [], []

    for part in row["parts"][:MAX_PARTS]:
        title = part["title"]
        is_new = True
        for paragraph in part["paragraphs"]:
            if is_new:
                parts.append({"title": title, "level": part.get("level", 1), "paragraphs": []})
                segments.append([])
            parts[-1]["paragraphs"].append(paragraph)
            segments[-1] += [paragraph[start:end] for start, end in find_elements(paragraph)]
            title, is_new = "", sum(map(len, segments)) >= WINDOW_SENTENCES
            if is_new:
                close_window()
                if len(windows) == MAX_WINDOWS:
                    return windows
    close_window()
    return windows


def choose_split(document: SourceDocument, by_document: bool) -> str:
    """Split of a document, by a hash of its source (or of itself)."""
    key = f"{document.domain}/{document.source}" + (f"/{document.title}" if by_document else "")
    value = int.from_bytes(blake2b(key.encode(), digest_size=4).digest(), "big") / 2**32
    for name, share in SPLIT_SHARES.items():
        if value < share:
            return name
        value -= share
    return name


def show_document(
    document: SourceDocument, style: str, rng: np.random.Generator
) -> SegmentationDocument | None:
    """The document in a style, with the boundaries of its parts; None if nothing is left of them."""
    if not (style in STYLES and STYLES[style].has_headings) and rng.random() < COARSE_SHARE:
        document = merge_subparts(document)
    if style == "sentences":
        return join_segments(document.title, document.segments)
    has_titles = all(part["title"] for part in document.parts[1:])
    if STYLES[style].has_headings and not has_titles:
        style = "paragraphs"
    rendered = render_document(document.title, document.parts, style, rng)
    markup = style if style in ("markdown", "html") else "plain"
    shown = SegmentationDocument.from_text(rendered.text, document.title, markup=markup)
    assert shown.offsets is not None
    marked = replace(shown, boundaries=rendered.mark_elements(shown.offsets))
    return marked if marked.boundaries.any() else None


def merge_subparts(document: SourceDocument) -> SourceDocument:
    """Document with parts of the top level only; the same one if fewer than two are left."""
    levels = [part["level"] for part in document.parts]
    parts: Parts = []
    segments: list[list[str]] = []
    for part, segment in zip(document.parts, document.segments, strict=True):
        if not parts or part["level"] == min(levels):
            parts.append({**part, "paragraphs": list(part["paragraphs"])})
            segments.append(list(segment))
        else:
            parts[-1]["paragraphs"] += part["paragraphs"]
            segments[-1] += segment
    return document if len(parts) < 2 else replace(document, parts=parts, segments=segments)


def compose_documents(
    documents: Sequence[SourceDocument], count: int, rng: np.random.Generator
) -> Iterator[SourceDocument]:
    """Documents whose parts are passages of different documents."""
    # one window of each document: two would be about the same subject
    distinct = {(document.source, document.title): document for document in documents}
    by_domain: dict[str, list[list[str]]] = {}
    for document in distinct.values():
        by_domain.setdefault(document.domain, []).append(document.sentences)
    every_passage = [sentences for domain in by_domain.values() for sentences in domain]
    domains = list(by_domain.values())
    shares = [share for _, _, share in COMPOSED_KINDS]
    for number in range(count):
        is_mixed = rng.random() > SAME_DOMAIN_SHARE
        passages = every_passage if is_mixed else domains[rng.integers(len(domains))]
        counts, lengths, _ = COMPOSED_KINDS[rng.choice(len(COMPOSED_KINDS), p=shares)]
        segments = []
        size = min(int(rng.integers(counts[0], counts[1] + 1)), len(passages))
        for index in rng.choice(len(passages), size, replace=False):
            length = int(rng.integers(lengths[0], lengths[1] + 1))
            last_start = max(0, len(passages[index]) - length)
            from_start = rng.random() < PASSAGE_FROM_START_SHARE
            start = 0 if from_start else int(rng.integers(0, last_start + 1))
            sentences = passages[index][start : start + length]
            segments.append(sentences)
        parts = [
            {"title": "", "level": 1, "paragraphs": [" ".join(segment)]} for segment in segments
        ]
        yield SourceDocument("composed", "composed", f"composed {number}", parts, segments)


def show_documents(
    documents: Sequence[SourceDocument], shares: dict[str, float], rng: np.random.Generator
) -> Iterator[tuple[str, SegmentationDocument]]:
    """Domain and document, each in a random style."""
    styles = rng.choice(list(shares), len(documents), p=np.array(list(shares.values())))
    for document, style in zip(documents, styles, strict=True):
        shown = show_document(document, str(style), rng)
        if shown is not None:
            yield document.domain, shown


def make_splits(
    corpora: Path, left_out: Sequence[str], quick: bool
) -> dict[str, list[tuple[str, SegmentationDocument]]]:
    """Domains and documents of every split."""
    folders = sorted(
        folder
        for folder in corpora.iterdir()
        if any(folder.glob("*.jsonl")) and folder.name not in left_out
    )
    limit = QUICK_DOCUMENTS if quick else DOCUMENTS_PER_DOMAIN
    documents: dict[str, list[SourceDocument]] = {name: [] for name in SPLIT_SHARES}
    for folder in folders:
        domain = read_domain(folder, limit)
        by_document = len({document.source for document in domain}) < MIN_SOURCES
        for document in domain:
            documents[choose_split(document, by_document)].append(document)
        print(f"{folder.name}: {len(domain)} documents", flush=True)
    splits = {}
    for seed, (name, sources) in enumerate(documents.items()):
        rng = np.random.default_rng(seed)
        composed = list(compose_documents(sources, round(COMPOSED_SHARE * len(sources)), rng))
        splits[name] = [
            *show_documents(sources, STYLE_SHARES, rng),
            *show_documents(composed, COMPOSED_STYLE_SHARES, rng),
        ]
    return splits


class ShippedSegmentation(Segmentation):
    """The task with documents in memory, and without columns that hardly vary in them."""

    collection: DocumentCollection

    def load_documents(self, settings: SegmentationSettings, folder: Path) -> DocumentCollection:
        """The documents of this script."""
        return self.collection

    def build(self):  # noqa: ANN201 (as in the task)
        """Model in which such columns have a standard deviation of 1e6, which zeroes them."""
        mean, std = self.feature_mean_std
        self.feature_mean_std = mean, np.where(std < MIN_STD, np.float32(1e6), std)
        return super().build()


def train(
    collection: DocumentCollection, folder: Path, quick: bool
) -> tuple[SegmentationSettings, Any]:
    """Train on the documents. Returns the settings and the ensemble of the best models."""
    training = {**SETTINGS["training"], **({"epochs": 1.0, "seeds": 1} if quick else {})}
    settings = SegmentationSettings.model_validate({**SETTINGS, "training": training})
    ShippedSegmentation.collection = collection
    ShippedSegmentation.monitor, ShippedSegmentation.larger_is_better = "valid/loss", False
    task = ShippedSegmentation(settings, folder, CATALOGUE)
    models = []
    for member in task.members() or [task]:
        run = create_run(member, folder / "runs")
        fit(member, run, on_step=_print_progress)
        models.append(load_best_model(run.path, member))
    return task.settings, models[0] if len(models) == 1 else task.combine(models)


def _print_progress(progress: TrainingProgress) -> None:
    if progress.scores:
        scores = (f"{name} {progress.scores[f'valid/{name}']:.4f}" for name in ("loss", "f1", "pk"))
        print(f"step {progress.step}: {', '.join(scores)}", flush=True)


def measure_thresholds(
    documents: Sequence[tuple[str, SegmentationDocument]],
    probabilities: Sequence[np.ndarray],
    decode: Callable[[np.ndarray, float], np.ndarray],
    thresholds: Sequence[float],
) -> tuple[float, dict[float, dict[str, float]]]:
    """The best threshold, and the mean Pk of every domain by threshold.

    It has the smallest mean Pk among those with which no domain is worse off than without any
    boundary. All domains count the same, whatever the number of their documents. Only documents
    without layout are used.
    """
    pk = Pk()

    def score_domains(predict: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        scores: dict[str, list[float]] = {}
        for (domain, document), p in zip(documents, probabilities, strict=True):
            if document.layout is None:
                score = pk.score_document(document.boundaries, predict(p))
                scores.setdefault(domain, []).append(score)
        return {domain: float(np.mean(values)) for domain, values in scores.items()}

    nothing = score_domains(lambda p: np.zeros(len(p), bool))
    table = {
        threshold: score_domains(lambda p, threshold=threshold: decode(p, threshold))
        for threshold in thresholds
    }
    means = {threshold: float(np.mean(list(row.values()))) for threshold, row in table.items()}
    for threshold, row in table.items():
        pks = ", ".join(f"{domain} {value:.3f}" for domain, value in row.items())
        print(f"threshold {threshold:g}: Pk {means[threshold]:.4f} ({pks})")
    useful = [
        threshold
        for threshold, row in table.items()
        if all(value <= nothing[domain] for domain, value in row.items())
    ]
    return min(useful or means, key=lambda threshold: means[threshold]), table


def main() -> None:
    """Make the documents, train, calibrate, choose the threshold, write the two files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder that corpora.py wrote")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_SEGMENTER.parent, help="folder for the two files"
    )
    parser.add_argument(
        "--leave-out", nargs="*", default=[], metavar="DOMAIN", help="domains that are not used"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few documents and one epoch, as a test run"
    )
    options = parser.parse_args()
    splits = make_splits(options.corpora, options.leave_out, options.quick)
    collection = DocumentCollection(
        "corpora", *(tuple(document for _, document in splits[name]) for name in SPLIT_SHARES)
    )
    with tempfile.TemporaryDirectory() as name:
        settings, model = train(collection, Path(name), options.quick)
    truths = [document.boundaries for document in collection.test]
    logits = compute_logits(
        model, compute_features_batch(collection.test, FEATURES, use_cache=False)
    )
    margins = [
        probabilities_to_margins(
            boundary_probabilities(class_probabilities(document_logits), "boundaries")
        )
        for document_logits in logits
    ]
    choice = choose_calibration(*flatten_documents(margins, truths), methods=SMOOTH_CALIBRATIONS)
    print(choice.format_table())
    probabilities = [choice.calibrator(document_margins) for document_margins in margins]
    print("least expected Pk")
    probe_threshold, pk_by_threshold = measure_thresholds(
        splits["test"],
        probabilities,
        lambda p, threshold: decode_expected_pk(p, threshold=threshold),
        PROBE_THRESHOLDS,
    )
    print("boundaries above a threshold")
    threshold, _ = measure_thresholds(
        splits["test"],
        probabilities,
        lambda p, threshold: decode_boundaries(p, threshold=threshold),
        THRESHOLDS,
    )
    metadata = {
        "made_by": "examples/segmentation/ship.py",
        "python": platform.python_version(),
        "texts": "listed with their licences in docs/segmentation-data.md",
        "left_out": sorted(options.leave_out),
        "documents": {name: len(documents) for name, documents in splits.items()},
        "held_out": {"calibration": choice.reason, "pk_by_threshold": pk_by_threshold},
    }
    path = save_pipeline(
        options.out,
        settings,
        model,
        choice.calibrator,
        threshold,
        decoder="expected_pk",
        probe_threshold=probe_threshold,
        half_precision=True,
        name=SHIPPED_SEGMENTER.stem,
        metadata=metadata,
    )
    print(f"{path}: threshold {threshold:g}, probe threshold {probe_threshold:g}")


if __name__ == "__main__":
    main()

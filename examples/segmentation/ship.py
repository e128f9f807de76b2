"""Train the segmenter that comes with the package, on texts that every Python installation has.

    python examples/segmentation/ship.py [--out FOLDER] [--quick]

The texts are the prose of the topics of `help()` and of the docstrings of the standard library,
both under Python's licence. Three kinds of documents are made of them: composed of segments of 3 to
11 sentences from different texts, as Choi did; composed of segments of 8 to 60 sentences, like the
sections of a long article; and the texts with their own segments (between headings; the docstrings
of a module). No text is in two of training, validation and calibration.

Feature columns that hardly vary in these texts are disabled, because other kinds of text fill them
and the model would see noise. In every document a share of the words, from none to most, is
replaced by unique words: handbooks repeat themselves more than other prose, and a model trained on
them alone takes every new word for a new topic.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from neural.optim.catalogue import CATALOGUE
from neural.tasks.segmentation.calibration_selection import choose_calibration, flatten_documents
from neural.tasks.segmentation.collection import compose_documents
from neural.tasks.segmentation.data.plain import split_sections
from neural.tasks.segmentation.decoding import decode_boundaries
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
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.tasks.segmentation.task import Segmentation
from neural.tasks.segmentation.text_splitting import find_elements
from neural.training.engine import TrainingProgress, fit
from neural.workflows.load_model import load_best_model
from neural.workflows.train import create_run

FEATURES = ("cohesion", "novelty", "chains", "openings", "vocabularies")
"""Repetition of words and openings of sentences; not layout, which depends on the kind of text."""
SPLIT_SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}
TRAINING_DOCUMENTS = 900
"""Approximate number; the other splits have an eighth of it."""
QUICK_DOCUMENTS = 90
MIN_TRAINING_SENTENCES = 2
"""Sentences of the shortest segment to train on; shorter ones are left out."""
MIN_SEGMENT_SENTENCES = 3
"""Sentences of the shortest predicted segment."""
MIN_TEXT_SENTENCES = 8
MAX_REPLACED_SHARE = 0.7
"""Maximum share of a document's words that are replaced by unique words."""
MIN_MEAN_SENTENCES = 4.5
"""Mean sentences per segment of a text whose own segments are used."""
MAX_PK_RATIO = 1.02
"""Thresholds whose Pk is at most this times the least count as equally good."""
MIN_STD = 0.03
"""A column with a smaller standard deviation is disabled."""
SMOOTH_CALIBRATIONS = ("temperature", "platt", "beta")
"""Strictly monotonic methods: they keep the order of the gaps."""
SETTINGS: dict[str, Any] = {
    "data": ".",
    "features": FEATURES,
    "elements": "sentences",
    "name": "shipped",
    "learn": "boundaries",
    "max_elements": 128,
    "model": {
        "hidden_dim": 48,
        "num_layers": 1,
        "dropout": 0.3,
        "input_dropout": 0.3,
        "attention_type": "localized",
        "window_size": 15,
        "attention_heads": 4,
        "attention_dim": 48,
        "attention_dropout": 0.1,
    },
    "training": {
        "batch_size": 16,
        "learning_rate": 2e-3,
        "scheduler": "cosine",
        "clip_norm": 1.0,
        "weight_decay": 0.05,
        "epochs": 6.0,
        "warmup_steps": 40,
    },
    "tracking": {"track_every": 0},
}

TextSegments = list[tuple[str, ...]]
"""The segments of a text, each as sentences."""


def load_texts() -> dict[str, TextSegments]:
    """Segments of every text, by name."""
    texts = {
        f"topic {name}": [extract_prose(section) for section in split_sections(text)]
        for name, text in sorted(topics.items())
    }
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.rglob("*.py")):
        relative = file.relative_to(library)
        if {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(relative.parts):
            continue
        texts[str(relative)] = [extract_prose(docstring) for docstring in find_docstrings(file)]
    long_segments = {
        name: [segment for segment in segments if len(segment) >= MIN_TRAINING_SENTENCES]
        for name, segments in texts.items()
    }
    return {
        name: segments
        for name, segments in long_segments.items()
        if sum(map(len, segments)) >= MIN_TEXT_SENTENCES
    }


def find_docstrings(file: Path) -> Iterator[str]:
    """Docstrings of a module, its classes and its functions."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            docstring := ast.get_docstring(node)
        ):
            yield docstring


def extract_prose(text: str) -> tuple[str, ...]:
    """Sentences of at least five words with punctuation at the end; no code, no tables."""
    sentences = (
        " ".join(text[start:end].split()) for start, end in find_elements(text, "sentences")
    )
    return tuple(
        sentence
        for sentence in sentences
        if len(sentence.split()) >= 5 and sentence[-1] in ".?!:)" and _letter_share(sentence) > 0.75
    )


def _letter_share(text: str) -> float:
    return sum(character.isalpha() or character == " " for character in text) / len(text)


def make_documents(
    texts: Sequence[TextSegments], count: int, seed: int
) -> list[SegmentationDocument]:
    """Composed documents, two thirds of `count`, and the texts with their own segments."""
    sources = [tuple(sentence for segment in text for sentence in segment) for text in texts]
    short = compose_documents(sources, count // 3, seed=seed)
    long = [
        document
        for index, segments in enumerate((4, 6, 9))
        for document in compose_documents(
            sources, count // 9, seed=seed + index + 1, segments=segments, length_range=(8, 60)
        )
    ]
    segmented = [
        text
        for text in texts
        if len(text) > 1 and sum(map(len, text)) >= MIN_MEAN_SENTENCES * len(text)
    ]
    own = [join_segments(f"own {index}", text) for index, text in enumerate(segmented)]
    rng = np.random.default_rng(seed)
    return [replace_words(document, rng) for document in (*short, *long, *own)]


def replace_words(document: SegmentationDocument, rng: np.random.Generator) -> SegmentationDocument:
    """Replace a random share of the words by unique ones."""
    share = rng.uniform(0, MAX_REPLACED_SHARE)

    def replace(word: str) -> str:
        if len(word) > 3 and rng.random() < share:
            return f"{word[:3]}{rng.integers(10**9)}"
        return word

    elements = tuple(" ".join(map(replace, element.split())) for element in document.elements)
    return SegmentationDocument(document.name, elements, boundaries=document.boundaries)


def make_splits(quick: bool) -> dict[str, list[SegmentationDocument]]:
    """Documents of every split, each from its own texts."""
    texts = list(load_texts().values())
    order = np.random.default_rng(0).permutation(len(texts))
    edges = np.cumsum([0, *(round(share * len(order)) for share in SPLIT_SHARES.values())])
    count = QUICK_DOCUMENTS if quick else TRAINING_DOCUMENTS
    return {
        name: make_documents(
            [texts[index] for index in order[first:last]],
            count if name == "train" else count // 8,
            seed=seed,
        )
        for seed, (name, first, last) in enumerate(
            zip(SPLIT_SHARES, edges, edges[1:], strict=False)
        )
    }


def write_splits(folder: Path, splits: dict[str, list[SegmentationDocument]]) -> None:
    """Write the documents as the JSON lines that the task reads."""
    for name, documents in splits.items():
        rows = [
            {
                "lines": document.elements,
                "boundaries": np.flatnonzero(document.boundaries).tolist(),
            }
            for document in documents
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


class ShippedSegmentation(Segmentation):
    """The task with columns disabled that hardly vary in the training documents."""

    def build(self):  # noqa: ANN201 (as in the task)
        """Model in which such columns have a standard deviation of 1e6, which zeroes them."""
        mean, std = self.feature_mean_std
        self.feature_mean_std = mean, np.where(std < MIN_STD, np.float32(1e6), std)
        return super().build()


def train(folder: Path, quick: bool) -> tuple[SegmentationSettings, Any]:
    """Train on the documents in `folder`. Returns the settings and the best model."""
    training = {**SETTINGS["training"], **({"epochs": 1.0} if quick else {})}
    settings = SegmentationSettings.model_validate({**SETTINGS, "training": training})
    task = ShippedSegmentation(settings, folder, CATALOGUE)
    for note in task.notes:
        print(note)
    run = create_run(task, folder / "runs")
    fit(task, run, on_step=_print_progress)
    return task.settings, load_best_model(run.path, task)


def _print_progress(progress: TrainingProgress) -> None:
    if progress.scores:
        scores = (f"{name} {progress.scores[f'valid/{name}']:.4f}" for name in ("loss", "f1", "pk"))
        print(f"step {progress.step}: {', '.join(scores)}")


def choose_middle_threshold(
    probabilities: Sequence[np.ndarray], truths: Sequence[np.ndarray]
) -> tuple[float, dict[float, float]]:
    """The median of the thresholds that are as good as the best, and Pk by threshold."""
    pk = Pk()
    pk_by_threshold = {
        round(threshold, 2): float(
            np.mean(
                [
                    pk.score_document(
                        truth,
                        decode_boundaries(
                            p, threshold=threshold, min_elements=MIN_SEGMENT_SENTENCES
                        ),
                    )
                    for truth, p in zip(truths, probabilities, strict=True)
                ]
            )
        )
        for threshold in np.arange(0.2, 0.95, 0.05)
    }
    limit = MAX_PK_RATIO * min(pk_by_threshold.values())
    good = [threshold for threshold, value in pk_by_threshold.items() if value <= limit]
    return good[len(good) // 2], pk_by_threshold


def main() -> None:
    """Make the documents, train, calibrate, choose the threshold, write the two files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_SEGMENTER.parent, help="folder for the two files"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few documents and one epoch, as a test run"
    )
    options = parser.parse_args()
    splits = make_splits(options.quick)
    with tempfile.TemporaryDirectory() as name:
        write_splits(Path(name), splits)
        settings, model = train(Path(name), options.quick)
    truths = [document.boundaries for document in splits["test"]]
    logits = compute_logits(
        model, compute_features_batch(splits["test"], FEATURES, use_cache=False)
    )
    margins = [
        probabilities_to_margins(
            boundary_probabilities(class_probabilities(document_logits), "boundaries")
        )
        for document_logits in logits
    ]
    choice = choose_calibration(*flatten_documents(margins, truths), methods=SMOOTH_CALIBRATIONS)
    print(choice.format_table())
    calibrated = [choice.calibrator(document_margins) for document_margins in margins]
    threshold, pk_by_threshold = choose_middle_threshold(calibrated, truths)
    print("Pk by threshold: " + ", ".join(f"{t:g}: {pk:.3f}" for t, pk in pk_by_threshold.items()))
    metadata = {
        "made_by": "examples/segmentation/ship.py",
        "python": platform.python_version(),
        "texts": "topics of help() and docstrings of the standard library, Python's licence",
        "documents": {name: len(documents) for name, documents in splits.items()},
        "held_out": {"calibration": choice.reason, "pk_by_threshold": pk_by_threshold},
    }
    path = save_pipeline(
        options.out,
        settings,
        model,
        choice.calibrator,
        threshold,
        min_elements=MIN_SEGMENT_SENTENCES,
        name=SHIPPED_SEGMENTER.stem,
        metadata=metadata,
    )
    print(f"{path}: threshold {threshold:g}")


if __name__ == "__main__":
    main()

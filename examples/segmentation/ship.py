"""Make the segmenter that comes with the package, from text that every Python carries, and from nothing else.

    python examples/segmentation/ship.py [--out FOLDER] [--quick]

The texts are the topics of `help()` and the docstrings of the standard library (both under Python's own licence), their
prose only. Three kinds of documents are made of them: pieces of 3 to 11 sentences from different texts, as Choi did;
pieces of 8 to 60, as the sections of a long article are; and the texts with their own parts (headings; the docstrings
of a module). No text is in two of training, validation and calibration. Columns of features that hardly vary in such
text are cut off, so that other kinds of text, which fill them, are not judged by noise. In every document a share of
the words, from none to most, is made unlike all others: handbooks repeat themselves more than other prose does, and a
model that has only seen them takes every new word for a new subject.
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

from neural.experiments import best_model, new_run
from neural.segmenting import SHIPPED, save_cutter
from neural.standard import CATALOGUE
from neural.tasks.cutting.calibration_choice import choose, questions
from neural.tasks.cutting.compose import compose
from neural.tasks.cutting.data.plain import sections
from neural.tasks.cutting.decode import decode
from neural.tasks.cutting.described import features_of_all
from neural.tasks.cutting.document import Document, joined
from neural.tasks.cutting.elements import spans
from neural.tasks.cutting.metrics.pk import Pk
from neural.tasks.cutting.predicted import boundary_probabilities, class_probabilities, scores_of
from neural.tasks.cutting.probability import margins
from neural.tasks.cutting.settings import SegmentationSettings
from neural.tasks.segmentation import Segmentation
from neural.training.engine import Progress, fit

FEATURES = ("cohesion", "novelty", "chains", "openings", "vocabularies")
"""What is said again and how sentences begin; not how they look, which differs from one kind of text to another."""
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}
DOCUMENTS = 900
"""Of training, nearly; the other parts have an eighth of it."""
SHORTEST = 2
"""Sentences of a part that is learned from; shorter ones are left out."""
LEAST = 3
"""Sentences of the shortest part that is found."""
LOST = 0.7
"""Up to this share of a document's words, another one in each, is made unlike all others."""
USUAL = 4.5
"""Sentences of a part, on average, that a text has at least if its own parts are learned from."""
AS_GOOD = 1.02
"""Thresholds whose Pk is at most so many times the least do as well as the best one; the middle of them is taken."""
VARIES = 0.03
"""A column whose deviation is below this says nothing in these texts."""
SMOOTH = ("temperature", "platt", "beta")
"""Calibrations without steps: of two gaps, the likelier stays the likelier one."""
SETTINGS: dict[str, Any] = {
    "data": ".", "features": FEATURES, "elements": "sentences", "name": "shipped", "learn": "boundaries",
    "longest": 128,
    "model": {
        "hidden_dim": 48, "num_layers": 1, "dropout": 0.3, "input_dropout": 0.3, "attention_type": "localized",
        "window_size": 15, "attention_heads": 4, "attention_dim": 48, "attention_dropout": 0.1,
    },
    "training": {
        "batch_size": 16, "learning_rate": 2e-3, "scheduler": "cosine", "clip_norm": 1.0, "weight_decay": 0.05,
        "epochs": 6.0, "warmup_steps": 40,
    },
    "tracking": {"track_every": 0},
}  # fmt: skip

Text = list[tuple[str, ...]]
"""The parts of a text, each as sentences."""


def texts() -> dict[str, Text]:
    """Everything, by name."""
    found = {f"topic {name}": [prose(one) for one in sections(text)] for name, text in sorted(topics.items())}
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.rglob("*.py")):
        inside = file.relative_to(library)
        if {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(inside.parts):
            continue
        found[str(inside)] = [prose(one) for one in docstrings(file)]
    kept = {name: [part for part in parts if len(part) >= SHORTEST] for name, parts in found.items()}
    return {name: parts for name, parts in kept.items() if sum(map(len, parts)) >= 8}


def docstrings(file: Path) -> Iterator[str]:
    """Of the module, its classes and its functions."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            yield said


def prose(text: str) -> tuple[str, ...]:
    """The sentences that are sentences: words, and a mark at the end; no code, no tables."""
    found = (" ".join(text[a:b].split()) for a, b in spans(text, "sentences"))
    return tuple(one for one in found if len(one.split()) >= 5 and one[-1] in ".?!:)" and _letters(one) > 0.75)


def _letters(text: str) -> float:
    return sum(one.isalpha() or one == " " for one in text) / len(text)


def documents(parts: Sequence[Text], count: int, seed: int) -> list[Document]:
    """Two thirds of them composed, of short and of long pieces; then the texts with parts of their own."""
    whole = [tuple(sentence for part in text for sentence in part) for text in parts]
    short = compose(whole, count // 3, seed=seed)
    long = [
        one
        for number, pieces in enumerate((4, 6, 9))
        for one in compose(whole, count // 9, seed=seed + number + 1, parts=pieces, lengths=(8, 60))
    ]
    roomy = [text for text in parts if len(text) > 1 and sum(map(len, text)) >= USUAL * len(text)]
    own = [joined(f"own {number}", text) for number, text in enumerate(roomy)]
    dice = np.random.default_rng(seed)
    return [sparser(one, dice) for one in (*short, *long, *own)]


def sparser(document: Document, dice: np.random.Generator) -> Document:
    """Some words become others that are said nowhere else: most prose repeats itself less than handbooks do."""
    share = dice.uniform(0, LOST)

    def changed(word: str) -> str:
        return f"{word[:3]}{dice.integers(10**9)}" if len(word) > 3 and dice.random() < share else word

    elements = tuple(" ".join(map(changed, one.split())) for one in document.elements)
    return Document(document.name, elements, boundaries=document.boundaries)


def shared_out(quick: bool) -> dict[str, list[Document]]:
    """Documents of every part, each from texts that the others do not have."""
    everything = list(texts().values())
    order = np.random.default_rng(0).permutation(len(everything))
    edges = np.cumsum([0, *(round(share * len(order)) for share in SHARES.values())])
    count = 90 if quick else DOCUMENTS
    return {
        name: documents(
            [everything[one] for one in order[first:last]], count if name == "train" else count // 8, seed=number
        )
        for number, (name, first, last) in enumerate(zip(SHARES, edges, edges[1:], strict=False))
    }


def write(folder: Path, parts: dict[str, list[Document]]) -> None:
    """As files that the task reads."""
    for name, some in parts.items():
        rows = [{"lines": one.elements, "boundaries": np.flatnonzero(one.boundaries).tolist()} for one in some]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


class Shipped(Segmentation):
    """The task, with a network that does not see what hardly varies in its documents."""

    def build(self):  # noqa: ANN201 (as in the task)
        """A deviation so large that nothing is left of such a column."""
        mean, spread = self.usual
        self.usual = mean, np.where(spread < VARIES, np.float32(1e6), spread)
        return super().build()


def trained(folder: Path, quick: bool) -> tuple[SegmentationSettings, Any]:
    """Settings and model after training on what `write` wrote."""
    said = {**SETTINGS, "training": {**SETTINGS["training"], **({"epochs": 1.0} if quick else {})}}
    task = Shipped(SegmentationSettings.model_validate(said), folder, CATALOGUE)
    for remark in task.remarks:
        print(remark)
    run = new_run(task, folder / "runs")
    fit(task, run, tell=lambda progress: print(_line(progress)) if progress.scores else None)
    return task.settings, best_model(run.path, task)


def _line(progress: Progress) -> str:
    scores = {name: progress.scores[f"valid/{name}"] for name in ("loss", "f1", "pk")}
    return f"step {progress.step}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items())


def middle(probabilities: Sequence[np.ndarray], truths: Sequence[np.ndarray]) -> tuple[float, dict[float, float]]:
    """The middle of the thresholds that do as well as the best, and Pk at every threshold tried."""
    pk = Pk()
    curve = {
        round(threshold, 2): float(np.mean([
            pk.value(truth, decode(p, threshold=threshold, least=LEAST))
            for truth, p in zip(truths, probabilities, strict=True)
        ]))
        for threshold in np.arange(0.2, 0.95, 0.05)
    }  # fmt: skip
    good = [one for one, value in curve.items() if value <= AS_GOOD * min(curve.values())]
    return good[len(good) // 2], curve


def main() -> None:
    """Make the documents, train, calibrate, choose the threshold, write the two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SHIPPED.parent, help="where the two files go")
    parser.add_argument("--quick", action="store_true", help="few documents, one epoch: does it run?")
    options = parser.parse_args()
    parts = shared_out(options.quick)
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), parts)
        settings, model = trained(Path(name), options.quick)
    truths = [one.boundaries for one in parts["test"]]
    scores = scores_of(model, features_of_all(parts["test"], FEATURES, keep=False))
    begins = [margins(boundary_probabilities(class_probabilities(one), "boundaries")) for one in scores]
    choice = choose(*questions(begins, truths), methods=SMOOTH)
    print(choice.table())
    calibrated = [choice.calibration(one) for one in begins]
    threshold, curve = middle(calibrated, truths)
    print("Pk by threshold: " + ", ".join(f"{one:g}: {value:.3f}" for one, value in curve.items()))
    about = {
        "made_by": "examples/segmentation/ship.py", "python": platform.python_version(),
        "texts": "topics of help() and docstrings of the standard library, Python's licence",
        "documents": {name: len(some) for name, some in parts.items()},
        "held_out": {"calibration": choice.why, "pk_by_threshold": curve},
    }  # fmt: skip
    path = save_cutter(
        options.out, settings, model, choice.calibration, threshold, least=LEAST, name=SHIPPED.stem, about=about
    )
    print(f"{path}: threshold {threshold:g}")


if __name__ == "__main__":
    main()

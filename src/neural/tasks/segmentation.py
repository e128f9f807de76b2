"""Where does one part end and the next begin? Documents of any length, an answer for every element.

What is learned is either where parts begin, or a label per element: then a part begins where the label changes. The
pieces are in `cutting/`: documents, features, losses, decoding, metrics.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import ValidationError

from neural.core.mistakes import briefly
from neural.core.registry import UnknownName
from neural.modules.alike import comparing
from neural.modules.late import torch
from neural.modules.segmenter import Segmenter, percent, shares, summary
from neural.tasks.cutting.collection import NAMES, Collection, collection
from neural.tasks.cutting.decode import decode
from neural.tasks.cutting.described import made_with, resolve
from neural.tasks.cutting.losses import (
    balanced,
    beside_boundaries,
    boundary_loss,
    cross_entropy,
    entropy,
    inner,
    target_weights,
)
from neural.tasks.cutting.metrics import registry as metrics
from neural.tasks.cutting.network import segmenter_of
from neural.tasks.cutting.packed import ByLength, packed
from neural.tasks.cutting.predicted import boundary_probabilities, class_probabilities, scores_of, threshold_for
from neural.tasks.cutting.prepared import Classes, examples_of, fingerprint, usual
from neural.tasks.cutting.presets import with_preset
from neural.tasks.cutting.reader import Reading
from neural.tasks.cutting.settings import SegmentationSettings
from neural.tasks.experiment import Experiment
from neural.tasks.task import Task, TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch

PROBE = 256
"""Elements of a probe document that are looked at."""
SHOWN = 40
"""Characters of an element beside a map."""


class Segmentation(Task):
    """Learn where one part of a text ends and the next begins."""

    Settings: ClassVar[type[Experiment]] = SegmentationSettings
    watched: ClassVar[str] = "valid/f1"
    larger_is_better: ClassVar[bool] = True

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, SegmentationSettings)
        settings = filled(experiment)
        found = documents_of(settings, folder)
        self.documents, self.hashes = (*found.train, *found.valid), found.hashes()
        begun, now = settings.fingerprint, fingerprint(self.documents)
        if begun is not None and begun != now:
            raise TaskError(
                f"{found.name} is not what the run was begun with: its documents changed; "
                "put the old ones back, or begin a new run"
            )

        # every element as numbers, and what is to be said about it
        try:
            names = resolve(settings.features)
        except UnknownName as unknown:
            raise TaskError(f"features: {unknown}") from None
        self.classes = Classes.of((*self.documents, *found.test), settings.learn, found.labels, found.name)
        self.train = examples_of(found.train, names, self.classes)
        self.valid = examples_of(found.valid, names, self.classes, first=len(found.train))
        self.pieces = [piece for one in self.train for piece in one.pieces(settings.longest)]
        self.usual = usual(self.train)
        gaps = sum(len(one) - 1 for one in self.train)
        self.rate = sum(int(one.boundaries.sum()) for one in self.train) / max(1, gaps)

        # how to train: an epoch is what patience and phases are counted in
        training = settings.training
        self.order = ByLength([len(one) for one in self.pieces], training.batch_size, training.seed)
        if training.validate_every is None:
            every = max(1, self.order.epoch // training.batches_per_step)
            training = training.model_copy(update={"validate_every": every})
        self.class_weights = weights_of(training.class_weights, self.train, self.classes)
        resolved = {
            "data": settings.data if settings.data in NAMES else str((folder / settings.data).absolute()),
            "features": names, "learn": self.classes.learned, "labels": self.classes.names, "training": training,
            "fingerprint": now, "name": settings.name or settings.preset or "segmentation",
        }  # fmt: skip
        self.settings = settings.model_copy(update=resolved)
        super().__init__(self.settings, folder, catalogue)
        self.remarks = (*found.remarks, *self._remarks())

    def build(self) -> Segmenter:
        """The network, which takes the inputs as they come."""
        model = segmenter_of(self.settings)
        model.standardize(*(torch.from_numpy(one) for one in self.usual))
        return model

    @property
    def epoch(self) -> int:
        """Batches that go once through the training documents."""
        return self.order.epoch

    def batch(self, index: int) -> Batch:
        """Documents of about one length."""
        return packed([self.pieces[one] for one in self.order[index]])

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The cross-entropy, and what the settings add to it; each of these as a curve of its own."""
        terms, curves = self.loss_terms(model, batch)
        return reduce(add, terms.values()), curves

    def loss_terms(self, model: Any, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The cross-entropy as "loss", and each addition with its factor, named as its curve."""
        training = self.settings.training
        if training.head_diversity_lambda:
            with comparing(model) as heads:
                scores = model.scores(batch["x"], batch["mask"])
        else:
            heads, scores = None, model.scores(batch["x"], batch["mask"])
        gaps, counted = self.counted(batch)
        weighting, smoothing = self.weighting(batch), training.label_smoothing
        loss = cross_entropy(
            scores, batch["target"], counted, label_smoothing=smoothing, **weighting
        )
        factors, curves = {}, {}
        logits = model.boundary_logits
        if training.boundary_lambda and logits is not None:
            factors["train/boundary_loss"] = training.boundary_lambda
            curves["train/boundary_loss"] = boundary_loss(logits, batch["boundaries"], gaps)
        if training.entropy_lambda:
            factors["train/entropy"] = -training.entropy_lambda
            curves["train/entropy"] = entropy(scores, counted)
        if heads is not None:
            factors["train/heads_alike"] = training.head_diversity_lambda
            curves["train/heads_alike"] = heads.alike()
        more = {name: factors[name] * curve for name, curve in curves.items()}
        return {"loss": loss, **more}, {name: curve.detach() for name, curve in curves.items()}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Target weights (cross-entropy), gaps (boundary loss) and targets (entropy).

        The likeness of heads is a ratio, not a mean; batches count in it by their elements.
        """
        gaps, counted = self.counted(batch)
        weights = target_weights(batch["target"], counted, **self.weighting(batch))
        return {
            "loss": float(weights.double().sum()),
            "train/boundary_loss": float(gaps.sum()),
            "train/entropy": float(counted.sum()),
            "train/heads_alike": float(batch["mask"].sum()),
        }

    def counted(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Gaps inside documents, and the elements that are predicted: gaps, or all real ones."""
        gaps = inner(batch["mask"], batch["first"])
        return gaps, gaps if self.classes.learned == "boundaries" else batch["mask"]

    def weighting(self, batch: Batch) -> dict[str, Tensor | None]:
        """Weights of the cross-entropy: of classes, and of elements beside boundaries."""
        classes, weight = self.class_weights, self.settings.training.boundary_weight
        beside = None
        if weight != 1:
            beside = beside_boundaries(batch["boundaries"], batch["mask"], weight)
        return {
            "class_weights": None if classes is None else torch.from_numpy(classes).to(batch["x"]),
            "element_weights": beside,
        }

    def evaluate(self, model: Any) -> dict[str, float]:
        """The mean log loss, in nats and never smoothed; every metric of boundaries, at `threshold`, and of labels."""
        if not self.valid:
            return {}
        predicted = [class_probabilities(one) for one in scores_of(model, [one.x for one in self.valid])]
        first = int(self.classes.learned == "boundaries")   # at the first element nothing is asked
        right = [p[np.arange(len(p)), one.target][first:] for p, one in zip(predicted, self.valid, strict=True)]
        losses = -np.log(np.concatenate(right).clip(np.finfo(np.float64).tiny))
        found = {"valid/loss": float(losses.mean()) if len(losses) else 0.0}
        begins = [boundary_probabilities(p, self.classes.learned) for p in predicted]
        threshold = self.settings.threshold or threshold_for(begins, self.rate)
        found["valid/threshold"] = threshold
        cuts = [decode(one, threshold=threshold) for one in begins]
        for name in metrics.names():
            metric = metrics.get(name)()
            if metric.reads == "boundaries":
                counts = metric.counts([one.boundaries for one in self.valid], cuts)
            elif self.classes.learned == "labels":
                counts = metric.counts([one.target for one in self.valid], [p.argmax(axis=1) for p in predicted])
            else:
                continue
            scores = {score: float(value) for score, value in metric.scores(counts.sum(axis=0)).items()}
            found |= {
                f"valid/{score.replace('boundary_f1', 'f1')}": value
                for score, value in scores.items() if not score.endswith("_macro")
            }  # fmt: skip
        return found

    def probe(self) -> Batch:
        """The beginnings of the first documents held out."""
        few = (self.valid or self.train)[: self.settings.tracking.probe_size]
        return packed([next(one.pieces(len(one)) if len(one) <= PROBE else one.pieces(PROBE)) for one in few])

    def look(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass."""
        return model(batch["x"], batch["mask"])

    def labels(self, batch: Batch) -> list[list[str]]:
        """How each element begins; a bar where a part does."""
        return [
            [self._label(int(document), int(first) + place) if real else "" for place, real in enumerate(mask)]
            for document, first, mask in zip(batch["document"], batch["first"], batch["mask"].tolist(), strict=True)
        ]

    def _label(self, document: int, place: int) -> str:
        one = self.documents[document]
        text = one.elements[place]
        return ("| " if one.boundaries[place] else "") + (text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")

    def layout(self) -> str:
        """LSTM, attention and classifier, with their shares."""
        return summary(self._unbuilt())

    def facts(self) -> dict[str, Any]:
        """What a reader of the run needs to know without the documents."""
        settings = self.settings
        return {
            "segmentation": {
                "learned": settings.learn, "labels": list(self.classes.names), "features": resolve(settings.features),
                "features_made_with": made_with(settings.features), "documents": [len(self.train), len(self.valid)],
            },
            "data/document_hashes": self.hashes,
        }  # fmt: skip

    def _unbuilt(self) -> Segmenter:
        with torch.device("meta"):
            return segmenter_of(self.settings)

    def _remarks(self) -> list[str]:
        model = self._unbuilt()
        whole = sum(one.numel() for one in model.parameters())
        large = [(part, count, share) for part, count, share in shares(model) if not part.startswith(" ")]
        parts = ", ".join(f"{part} {count:,} ({percent(share)})" for part, count, share in large)
        elements = sum(len(one) for one in self.train)
        return [
            f"{whole:,} parameters: {parts}",
            f"{len(self.train):,} documents to learn from, {len(self.valid):,} that judge; {elements:,} elements, "
            f"a part begins at {self.rate:.1%} of the gaps",
        ]

    @classmethod
    def without_data(cls, experiment: Experiment, catalogue: Catalogue) -> Segmenter:
        """What the inputs are and how they are scaled is known to settings and weights."""
        assert isinstance(experiment, SegmentationSettings)
        return segmenter_of(experiment)

    @classmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> Segmentation:
        """Fruit and tools, a few lines each."""
        random, words = np.random.default_rng(0), (("apple", "pear", "plum", "fig"), ("saw", "file", "drill", "plane"))
        rows = []
        for number in range(17):
            parts = [(words[(number + part) % 2], int(random.integers(2, 5))) for part in range(3)]
            lines = [" ".join(random.choice(kind, 3)) for kind, length in parts for _ in range(length)]
            starts = [parts[0][1], parts[0][1] + parts[1][1]]
            rows.append(json.dumps({"lines": lines, "boundaries": starts}))
        (folder / "tiny.jsonl").write_text("\n".join(rows), encoding="utf-8")
        return cls(SegmentationSettings.model_validate(TINY), folder, catalogue)


def filled(experiment: SegmentationSettings) -> SegmentationSettings:
    """With the values of the preset where nothing was said."""
    start = f"what is said does not go with the preset `{experiment.preset}`"
    try:
        settings = with_preset(experiment, experiment.preset)
    except ValidationError as problem:
        raise TaskError(f"{start}: {briefly(problem)}") from None
    if wrong := settings.alone():
        raise TaskError(f"{start}: {wrong}")
    return settings


def documents_of(settings: SegmentationSettings, folder: Path) -> Collection:
    """The documents that the settings name, shared out."""
    try:
        return collection(
            settings.data, folder, reading=Reading(settings.elements, settings.told_by), compose=settings.compose,
            valid=settings.validation_split, test=settings.test_split, seed=settings.split_seed,
            allow_duplicates=settings.allow_duplicates,
        )  # fmt: skip
    except TaskError as problem:
        gone = "the documents that the run was begun with are gone: " if settings.fingerprint else ""
        raise TaskError(f"{gone}{problem}") from None


def weights_of(said: Any, examples: Any, classes: Classes) -> np.ndarray | None:
    """How much each class counts, as numbers; TaskError where there are not as many as classes."""
    if said is None:
        return None
    if said == "balanced":
        first = int(classes.learned == "boundaries")
        return balanced([one.target[first:] for one in examples], len(classes.names))
    if len(said) != len(classes.names):
        raise TaskError(
            f"training.class_weights has {len(said)} numbers, but there are {len(classes.names)} classes: "
            f"{', '.join(classes.names)}"
        )
    return np.array(said, dtype=np.float64)


TINY = {
    "data": "tiny.jsonl", "features": ("word_overlap", "shape"),
    "model": {
        "hidden_dim": 3, "num_layers": 2, "attention_type": "boundary_aware", "attention_heads": 2, "attention_dim": 4,
    },
    "training": {"batch_size": 4, "epochs": 2.0, "entropy_lambda": 0.01, "head_diversity_lambda": 0.1},
}  # fmt: skip

"""The task `segmentation`: predict a class for every element of documents of any length.

An element is one sentence or line of a document. The target is either a boundary (does a segment
begin here?) or a label per element; with labels, a segment begins where the label changes. A gap is
the place between two neighbouring elements, where a boundary may be; it has the index of the second
one.

The base class `Task` (tasks/task.py) declares what the trainer calls: `build`, `batch`, `loss`,
`evaluate` and others. A run is the folder of one training. Notes are sentences for the user. A
probe is an example whose attention maps are captured during training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import ValidationError

from neural.core.errors import TaskError
from neural.core.experiment import Experiment
from neural.core.experiment_guess import ExperimentGuess
from neural.core.metadata_fields import MetadataField, is_text, list_of, mapping_of
from neural.core.page_section import PageSection, SectionRun
from neural.core.registry import UnknownNameError
from neural.core.result import Result
from neural.core.settings_errors import format_validation_error
from neural.nn.head_similarity import measure_head_similarity
from neural.nn.lazy_torch import functional, torch
from neural.tasks.segmentation.collate import (
    LengthBucketedOrder,
    SegmentationClasses,
    collate_examples,
    compute_mean_std,
    fingerprint_documents,
    make_examples,
)
from neural.tasks.segmentation.collection import NAMED_COLLECTIONS, DocumentCollection
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.ensemble import SegmenterEnsemble, build_model
from neural.tasks.segmentation.evaluation import evaluate
from neural.tasks.segmentation.evaluation_data import load_task_documents
from neural.tasks.segmentation.feature_cache import dependency_versions, resolve_features
from neural.tasks.segmentation.guess import guess_segmentation
from neural.tasks.segmentation.held_out import (
    HELD_OUT_FIELD,
    HELD_OUT_KEY,
    PREDICTED_LABELS_KEY,
    PROBABILITIES_KEY,
    describe_held_out,
    select_recorded,
)
from neural.tasks.segmentation.inference import (
    boundary_probabilities,
    choose_threshold,
    class_probabilities,
    compute_logits,
)
from neural.tasks.segmentation.initial_weights import (
    SHIPPED,
    InitialWeights,
    load_initial_weights,
)
from neural.tasks.segmentation.losses import (
    boundary_loss,
    compute_class_weights,
    cross_entropy,
    mask_gaps,
    mean_entropy,
    target_weights,
    weight_near_boundaries,
)
from neural.tasks.segmentation.metrics import registry as metrics
from neural.tasks.segmentation.model import (
    Segmenter,
    format_parameter_table,
    format_percent,
    parameter_shares,
)
from neural.tasks.segmentation.prediction import predict_documents
from neural.tasks.segmentation.settings import SegmentationSettings, apply_preset
from neural.tasks.task import Predictions, Task, TrainedRun

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch, Scores

MAX_PROBE_ELEMENTS = 256
"""A longer probe is cut to about this many elements, because attention maps grow as the square."""
MAX_LABEL_CHARACTERS = 40
"""Maximum number of characters of an element's text shown beside an attention map."""


class Segmentation(Task):
    """Learn where one segment of a text ends and the next begins."""

    aliases: ClassVar[tuple[str, ...]] = ("text_segmentation", "topic_segmentation")
    Settings: ClassVar[type[Experiment]] = SegmentationSettings
    # The metric that selects the best checkpoint and decides early stopping.
    monitor: ClassVar[str] = "valid/f1"
    larger_is_better: ClassVar[bool] = True
    # Types of the keys that `metadata` adds to a run, for checks when a run is read.
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        "data/document_hashes": MetadataField(
            mapping_of(list_of(is_text)), "a mapping of `train` and `valid` to lists of texts"
        ),
        HELD_OUT_KEY: HELD_OUT_FIELD,
    }

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        """Load the documents and compute their features. TaskError if something is wrong with them.

        `experiment` are the settings; paths in them are relative to `folder`. `catalogue` (names of
        layers in `.neural` programs) is not used.
        """
        assert isinstance(experiment, SegmentationSettings)
        self.initial = (
            load_initial_weights(experiment.initial, folder) if experiment.initial else None
        )
        settings = fill_settings(experiment, self.initial)
        collection = self.load_documents(settings, folder)
        self.documents = (*collection.train, *collection.valid)
        self.hashes = collection.document_hashes()
        # The settings of a run contain a fingerprint, so this detects changes before a resume.
        fingerprint = fingerprint_documents(self.documents)
        if settings.fingerprint is not None and settings.fingerprint != fingerprint:
            raise TaskError(
                f"{collection.name} is not what the run was started with: its documents changed; "
                "put the old ones back, or start a new run"
            )

        # Features and targets of every element.
        try:
            feature_names = resolve_features(settings.features)
        except UnknownNameError as error:
            raise TaskError(f"features: {error}") from None
        self.classes = SegmentationClasses.from_documents(
            (*self.documents, *collection.test), settings.learn, collection.labels, collection.name
        )
        self.train = make_examples(collection.train, feature_names, self.classes)
        self.valid = make_examples(
            collection.valid, feature_names, self.classes, first_id=len(collection.train)
        )
        self.chunks = [
            chunk for example in self.train for chunk in example.split(settings.max_elements)
        ]
        self.feature_mean_std = compute_mean_std(self.train)
        gap_count = sum(len(example) - 1 for example in self.train)
        boundary_count = sum(int(example.boundaries.sum()) for example in self.train)
        self.boundary_rate = boundary_count / max(1, gap_count)

        # Batches. Validate once per epoch by default, because `patience` (early stopping) is
        # counted in validations.
        training = settings.training
        self.order = LengthBucketedOrder(
            [len(chunk) for chunk in self.chunks], training.batch_size, training.seed
        )
        if training.validate_every is None:
            every = max(1, self.order.batches_per_epoch // training.batches_per_step)
            training = training.model_copy(update={"validate_every": every})
        self.class_weights = resolve_class_weights(training.class_weights, self.train, self.classes)
        # Resolved settings are saved with the run: they repeat it from any working folder.
        resolved = {
            "data": settings.data
            if settings.data in NAMED_COLLECTIONS
            else str((folder / settings.data).absolute()),
            "features": feature_names,
            "initial": settings.initial
            if settings.initial in (None, SHIPPED)
            else str((folder / settings.initial).absolute()),
            "learn": self.classes.target_kind,
            "labels": self.classes.names,
            "training": training,
            "fingerprint": fingerprint,
            "name": settings.name or settings.preset or "segmentation",
        }
        self.settings = settings.model_copy(update=resolved)
        super().__init__(self.settings, folder, catalogue)
        self.notes = (*collection.notes, *self._make_notes())

    def load_documents(self, settings: SegmentationSettings, folder: Path) -> DocumentCollection:
        """Documents of the three splits; a subclass may make them itself."""
        return load_task_documents(settings, folder)

    def build(self) -> Segmenter | SegmenterEnsemble:
        """New model that standardizes features by mean and std of the training data.

        Untrained, unless the setting `initial` names weights to start from.
        """
        model = build_model(self.settings)
        mean, std = map(torch.from_numpy, self.feature_mean_std)
        for member in model.networks if isinstance(model, SegmenterEnsemble) else (model,):
            member.set_standardization(mean, std)
            if self.initial is not None:
                self.initial.load_into(member, self.settings.features)
        return model

    def members(self) -> Sequence[Task]:
        """Tasks with the same documents and the seeds from `training.seed` on; see `Task`."""
        count, first_seed = self.settings.training.seeds, self.settings.training.seed
        if count == 1:
            return ()
        return [self._with_seed(seed) for seed in range(first_seed, first_seed + count)]

    def _with_seed(self, seed: int) -> Segmentation:
        """The same task for a single model with this seed."""
        member = copy(self)
        training = self.settings.training.model_copy(update={"seed": seed, "seeds": 1})
        member.settings = self.settings.model_copy(
            update={"training": training, "name": f"seed-{seed}"}
        )
        member.experiment = member.settings
        member.order = LengthBucketedOrder(self.order.lengths.tolist(), training.batch_size, seed)
        return member

    def combine(self, models: Sequence[Any]) -> SegmenterEnsemble:
        """Ensemble of these models."""
        return SegmenterEnsemble(models)

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches in one pass over the training documents."""
        return self.order.batches_per_epoch

    def batch(self, index: int) -> Batch:
        """Training batch number `index`: padded documents, or chunks, of similar length."""
        return collate_examples([self.chunks[chunk_index] for chunk_index in self.order[index]])

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Sum of the loss terms, and metrics: the optional terms before weighting."""
        terms, term_metrics = self.loss_terms(model, batch)
        return reduce(add, terms.values()), term_metrics

    def loss_terms(self, model: Any, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Terms of the loss by name, and metrics.

        The cross-entropy is the term "loss"; the other terms are optional and include their factor
        (`training.*_lambda`). The metrics are the optional terms without the factor.
        """
        training = self.settings.training
        if training.head_diversity_lambda:
            with measure_head_similarity(model) as head_similarity:
                logits = model.logits(batch["x"], batch["mask"])
        else:
            head_similarity, logits = None, model.logits(batch["x"], batch["mask"])
        gap_mask, target_mask = self.target_masks(batch)
        weighting, smoothing = self.loss_weighting(batch), training.label_smoothing
        loss = cross_entropy(
            logits, batch["target"], target_mask, label_smoothing=smoothing, **weighting
        )
        factors, values = {}, {}
        boundary_logits = model.boundary_logits
        if training.boundary_lambda and boundary_logits is not None:
            factors["train/boundary_loss"] = training.boundary_lambda
            values["train/boundary_loss"] = boundary_loss(
                boundary_logits, batch["boundaries"], gap_mask
            )
        if training.entropy_lambda:
            # Negative: low entropy, which is high confidence, is penalized.
            factors["train/entropy"] = -training.entropy_lambda
            values["train/entropy"] = mean_entropy(logits, target_mask)
        if head_similarity is not None:
            factors["train/head_similarity"] = training.head_diversity_lambda
            values["train/head_similarity"] = head_similarity.mean()
        terms = {name: factors[name] * value for name, value in values.items()}
        return {"loss": loss, **terms}, {name: value.detach() for name, value in values.items()}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Weight of this batch in each term, when processes and micro-batches are averaged.

        It is the number of targets (or the sum of their weights) that the term is a mean over. Head
        similarity is not such a mean; its weight is the number of elements.
        """
        gap_mask, target_mask = self.target_masks(batch)
        weights = target_weights(batch["target"], target_mask, **self.loss_weighting(batch))
        return {
            "loss": float(weights.double().sum()),
            "train/boundary_loss": float(gap_mask.sum()),
            "train/entropy": float(target_mask.sum()),
            "train/head_similarity": float(batch["mask"].sum()),
        }

    def target_masks(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Masks, (B, T) each: elements with a gap before them, and elements with a target.

        With boundaries as the target, both are the same; with labels, every element has a target.
        """
        # `first`: index in its document of the first element of each row; rows may be chunks.
        gap_mask = mask_gaps(batch["mask"], batch["first"])
        return gap_mask, gap_mask if self.classes.target_kind == "boundaries" else batch["mask"]

    def loss_weighting(self, batch: Batch) -> dict[str, Tensor | None]:
        """Arguments of `cross_entropy`: class weights (C,) and element weights (B, T), or None.

        Element weights are above or below 1 for the elements beside boundaries.
        """
        class_weights, boundary_weight = self.class_weights, self.settings.training.boundary_weight
        element_weights = None
        if boundary_weight != 1:
            element_weights = weight_near_boundaries(
                batch["boundaries"], batch["mask"], boundary_weight
            )
        return {
            "class_weights": None
            if class_weights is None
            else torch.from_numpy(class_weights).to(batch["x"]),
            "element_weights": element_weights,
        }

    def evaluate(self, model: Any) -> Scores:
        """Metrics of the validation documents, and arrays of the predictions (held_out.py).

        `valid/loss` is the mean log loss in nats, without weights and smoothing. Boundary metrics
        use the setting `threshold`. By default the threshold is chosen so that the predicted
        fraction of boundaries is that of the training documents.
        """
        if not self.valid:
            return {}
        logits = compute_logits(model, [example.x for example in self.valid])
        predicted = [class_probabilities(document_logits) for document_logits in logits]
        # The first element of a document is no boundary target: there is no gap before it.
        first_target = int(self.classes.target_kind == "boundaries")
        target_probabilities = [
            p[np.arange(len(p)), example.target][first_target:]
            for p, example in zip(predicted, self.valid, strict=True)
        ]
        losses = -np.log(np.concatenate(target_probabilities).clip(np.finfo(np.float64).tiny))
        results: Scores = {"valid/loss": float(losses.mean()) if len(losses) else 0.0}
        probabilities = [boundary_probabilities(p, self.classes.target_kind) for p in predicted]
        threshold = self.settings.threshold or choose_threshold(probabilities, self.boundary_rate)
        results["valid/threshold"] = threshold
        boundaries = [decode_boundaries(p, threshold=threshold) for p in probabilities]
        for name in metrics.names():
            metric = metrics.get(name)()
            if metric.input_kind == "boundaries":
                counts = metric.count_documents(
                    [example.boundaries for example in self.valid], boundaries
                )
            elif self.classes.target_kind == "labels":
                counts = metric.count_documents(
                    [example.target for example in self.valid],
                    [p.argmax(axis=1) for p in predicted],
                )
            else:
                continue
            results |= {
                f"valid/{score.replace('boundary_f1', 'f1')}": float(value)
                for score, value in metric.scores(counts.sum(axis=0)).items()
                if not score.endswith("_macro")
            }
        recorded = select_recorded(self.valid)
        if recorded:
            results[PROBABILITIES_KEY] = np.concatenate([probabilities[i] for i in recorded])
            if self.classes.target_kind == "labels":
                labels = [predicted[i].argmax(axis=1) for i in recorded]
                results[PREDICTED_LABELS_KEY] = np.concatenate(labels)
        return results

    def probe_batch(self) -> Batch:
        """The first validation documents, cut to `MAX_PROBE_ELEMENTS`, as one batch.

        Their attention is captured during training.
        """
        return self.held_out_batch(self.settings.tracking.probe_size)

    @property
    def has_held_out(self) -> bool:
        """Whether some documents are held out."""
        return bool(self.valid)

    def held_out_batch(self, count: int) -> Batch:
        """The first validation documents, cut to `MAX_PROBE_ELEMENTS`."""
        examples = (self.valid or self.train)[:count]
        return collate_examples([next(example.split(MAX_PROBE_ELEMENTS)) for example in examples])

    def example_losses(self, model: Any, batch: Batch) -> Tensor:
        """Cross-entropy of every element that has a target, (B, T), in nats."""
        target = self.target_classes(batch)
        logits = model.logits(batch["x"], batch["mask"]).float()
        losses = functional.cross_entropy(
            logits.transpose(1, 2), target.clamp(min=0), reduction="none"
        )
        return losses.masked_fill(target < 0, float("nan"))

    def target_classes(self, batch: Batch) -> Tensor:
        """Class of every element; −1 for padding and elements without a target."""
        return batch["target"].masked_fill(~self.target_masks(batch)[1], -1)

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """Class probabilities, (B, T, C)."""
        return model(batch["x"], batch["mask"])

    def position_labels(self, batch: Batch) -> list[list[str]]:
        """Labels of the positions in attention maps, per document.

        A label is the start of the element's text. The first element of a segment has a bar before
        it; padding has the label "".
        """
        return [
            [
                self._format_element(int(document), int(first) + position) if is_element else ""
                for position, is_element in enumerate(mask)
            ]
            for document, first, mask in zip(
                batch["document"], batch["first"], batch["mask"].tolist(), strict=True
            )
        ]

    def _format_element(self, document_index: int, position: int) -> str:
        document = self.documents[document_index]
        text = document.elements[position]
        return ("| " if document.boundaries[position] else "") + (
            text if len(text) <= MAX_LABEL_CHARACTERS else text[: MAX_LABEL_CHARACTERS - 1] + "…"
        )

    def model_summary(self) -> str:
        """Text table: number and share of parameters of LSTM, attention and classifier."""
        return format_parameter_table(self._build_on_meta())

    def metadata(self) -> dict[str, Any]:
        """Metadata that is saved with a run: target, features, hashes, validation documents."""
        settings = self.settings
        return {
            "segmentation": {
                "target_kind": settings.learn,
                "labels": list(self.classes.names),
                "features": resolve_features(settings.features),
                "feature_dependencies": dependency_versions(settings.features),
                "documents": [len(self.train), len(self.valid)],
            },
            "data/document_hashes": self.hashes,
            HELD_OUT_KEY: describe_held_out(self.valid, self.documents, self.classes),
        }

    @classmethod
    def page_sections(cls, run: SectionRun) -> list[PageSection]:
        """Section of a run's report page: number of documents, labels and features."""
        metadata = run.metadata("segmentation")
        if not isinstance(metadata, dict):
            return []
        documents = metadata.get("documents") or []
        rows = [
            ("documents for training, for validation", ", ".join(map(str, documents))),
            ("labels", ", ".join(map(str, metadata.get("labels") or []))),
            ("features", ", ".join(map(str, metadata.get("features") or []))),
        ]
        return [
            PageSection(
                title="Documents and features",
                table_rows=[row for row in rows if row[1]],
            )
        ]

    def _build_on_meta(self) -> Segmenter:
        """Model, or member of an ensemble, without weight storage, for counting parameters."""
        with torch.device("meta"):
            model = build_model(self.settings)
        return model.networks[0] if isinstance(model, SegmenterEnsemble) else model

    def _make_notes(self) -> list[str]:
        model = self._build_on_meta()
        total = sum(param.numel() for param in model.parameters())
        shares = ", ".join(
            f"{label} {count:,} ({format_percent(share)})"
            for label, count, share in parameter_shares(model)
            if not label.startswith(" ")  # indented labels are parts of the one above
        )
        elements = sum(len(example) for example in self.train)
        training = self.settings.training
        ensemble_notes = (
            [
                f"ensemble of {training.seeds} models with the seeds {training.seed} to "
                f"{training.seed + training.seeds - 1}, trained one after the other"
            ]
            if training.seeds > 1
            else []
        )
        initial_notes = (
            [self.initial.describe(model, self.settings.features)] if self.initial else []
        )
        return [
            *ensemble_notes,
            *initial_notes,
            f"{total:,} parameters{' each' * (training.seeds > 1)}: {shares}",
            f"{len(self.train):,} training documents, {len(self.valid):,} validation documents; "
            f"{elements:,} elements, boundaries at {self.boundary_rate:.1%} of the gaps",
        ]

    @classmethod
    def build_from_settings(
        cls, experiment: Experiment, catalogue: Catalogue
    ) -> Segmenter | SegmenterEnsemble:
        """Model of a run, built without its data.

        Mean and std of the features are buffers of the model, so they are loaded with the weights.
        """
        assert isinstance(experiment, SegmentationSettings)
        return build_model(experiment)

    @classmethod
    def predict(cls, run: TrainedRun, source: str | bytes) -> Predictions:
        """Predict for the file at the path `source`, or for the bytes of one text."""
        return predict_documents(run, source)

    @classmethod
    def guess(cls, path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess | None:
        """Documents with marked segments."""
        return guess_segmentation(path)

    @classmethod
    def describe_input(cls, run: TrainedRun) -> str:
        """Texts."""
        return "a text file, or documents in .jsonl or .ref; `-` is standard input"

    @classmethod
    def evaluate_run(cls, run: TrainedRun, **options: Any) -> Result:
        """Scores of a run and of all baselines on held-out documents; see `evaluation.evaluate`."""
        return evaluate(run, **options)

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Segmentation:
        """A tiny task for tests: documents of three segments of fruit names or tool names."""
        rng = np.random.default_rng(0)
        topics = (("apple", "pear", "plum", "fig"), ("saw", "file", "drill", "plane"))
        rows = []
        for index in range(17):
            segments = [
                (topics[(index + segment) % 2], int(rng.integers(2, 5))) for segment in range(3)
            ]
            lines = [
                " ".join(rng.choice(words, 3)) for words, length in segments for _ in range(length)
            ]
            starts = [segments[0][1], segments[0][1] + segments[1][1]]
            rows.append(json.dumps({"lines": lines, "boundaries": starts}))
        (folder / "tiny.jsonl").write_text("\n".join(rows), encoding="utf-8")
        return cls(SegmentationSettings.model_validate(EXAMPLE_SETTINGS), folder, catalogue)


def fill_settings(
    experiment: SegmentationSettings, initial: InitialWeights | None = None
) -> SegmentationSettings:
    """Settings, completed with those of the initial weights and with the values of their preset.

    TaskError if the settings contradict them.
    """
    sources = [f"the preset `{experiment.preset}`"] if experiment.preset else []
    sources += [initial.name] if initial else []
    prefix = f"the settings contradict {' or '.join(sources)}"
    try:
        settings = initial.fill_settings(experiment) if initial else experiment
        settings = apply_preset(settings, experiment.preset)
    except ValidationError as error:
        raise TaskError(f"{prefix}: {format_validation_error(error)}") from None
    if message := settings.head_diversity_error():
        raise TaskError(f"{prefix}: {message}")
    return settings


def resolve_class_weights(
    class_weights: Any, examples: Any, classes: SegmentationClasses
) -> np.ndarray | None:
    """Weight of each class, (C,); None for equal weights.

    `class_weights` is the setting: None, "balanced", or a number per class. TaskError if there are
    not as many numbers as classes.
    """
    if class_weights is None:
        return None
    if class_weights == "balanced":
        # The first element of a document is no boundary target: there is no gap before it.
        first_target = int(classes.target_kind == "boundaries")
        return compute_class_weights(
            [example.target[first_target:] for example in examples], len(classes.names)
        )
    if len(class_weights) != len(classes.names):
        raise TaskError(
            f"training.class_weights has {len(class_weights)} numbers, "
            f"but there are {len(classes.names)} classes: {', '.join(classes.names)}"
        )
    return np.array(class_weights, dtype=np.float64)


EXAMPLE_SETTINGS = {
    "data": "tiny.jsonl",
    "features": ("word_overlap", "shape"),
    "model": {
        "hidden_dim": 3,
        "num_layers": 2,
        "attention_type": "boundary_aware",
        "attention_heads": 2,
        "attention_dim": 4,
    },
    "training": {
        "batch_size": 4,
        "epochs": 2.0,
        "entropy_lambda": 0.01,
        "head_diversity_lambda": 0.1,
    },
}

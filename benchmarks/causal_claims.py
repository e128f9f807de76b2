"""What heads are for: claims about attention, decided by interventions on trained models.

    python benchmarks/causal_claims.py [--only a b c d e] [--runs FOLDER] [--seeds 0 1 2 3 4]

    a   Do specialised heads (low entropy) matter more?
    b   Does a head's pattern come before or after its importance?
    c   Do entropy regularisation and head diversity change which heads matter?
    d   Does the bias of boundary-aware attention cause the segmenter's boundaries?
    e   Does a focus model's answer depend on the segment that it attends to, as SAIF says?

Trains small models first, one after another; finished runs and measurements are reused by name, so
an interrupted benchmark resumes; delete the folder after a change of settings. a and b use tiny
Shakespeare, enwik8 and text8 (the folder that NEURAL_DATA names), or other texts with --texts; c
and d Python's help topics; e the digits of scikit-learn. The seed is the unit of all intervals.
Settings were chosen with seed 100; docs/claims.md says where they were not.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from importance_statistics import (
    compare_with_permutations,
    correlate_heads,
    count_effective_heads,
    find_half_rise,
    measure_gini,
)
from scipy.special import logit
from scipy.stats import spearmanr

from neural.capture.head_importance import HeadImportance, measure_head_importance
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import HeadOutputs, patch, replace_by_mean
from neural.core.experiment import Experiment
from neural.findings.head_necessity import decide_necessity, load_roles
from neural.findings.head_roles import (
    ROLE_THRESHOLDS,
    find_head_roles,
)
from neural.findings.run_loading import load_measure
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceRecord,
    ImportanceStep,
    load_importance,
    save_importance_step,
)
from neural.runs.run import Run
from neural.stats.correlation import SIGNIFICANCE_LEVEL, SMALL_CORRELATION
from neural.stats.estimate import Estimate
from neural.stats.means import MIN_SEEDS, estimate_mean, estimate_share
from neural.tasks import registry as tasks
from neural.tasks.segmentation.collate import collate_examples, make_examples
from neural.tasks.segmentation.evaluation_data import load_task_documents
from neural.tasks.segmentation.feature_cache import resolve_features
from neural.tasks.segmentation.losses import mask_gaps
from neural.training.engine import fit
from neural.training.load_model import load_best_model, load_model
from neural.training.load_task import create_task
from neural.workflows.train import create_run

NUM_DONORS = 8
"""Other documents or examples whose values replace those of each one, one at a time."""
EXAMPLES = Path(__file__).parent.parent / "examples"
TEXTS = ("shakespeare_char", "enwik8", "text8")
LANGUAGE_STEPS, SNAPSHOT_EVERY = 600, 25
NUM_WINDOWS = 64
"""Held-out windows on which importance is measured, evenly spaced."""
LANGUAGE_MODEL = """network Heads {
  input: (64,)
  layers:
    Embedding(input_dim=256, output_dim=64)
    TransformerDecoder(
      num_heads=8,
      d_model=64,
      dff=256,
      positional="rotary",
      activation="squared_relu",
      normalization="rms",
      qk_norm=true,
      bias=false,
      init="zero",
      final_norm=true,
    ) * 3
    Output(256, activation="softmax", bias=false, init="zero")

  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(
    learning_rate=CosineDecay(4e-3, 550, alpha=0.1, warmup_steps=50),
    beta_2=0.99,
    weight_decay=0.1,
  )
  train {
    steps: 600
    batch_size: 16
    clip_norm: 1.0
  }
}
"""


def train_or_reuse(folder: Path, settings: Mapping[str, Any]) -> tuple[Run, Any]:
    """The finished run in `folder` and its task; trained if there is none."""
    settings_class: type[Experiment] = tasks.get(settings["task"]).Settings
    task = create_task(settings_class.model_validate(settings), EXAMPLES / "focus")
    if folder.is_dir():
        for path in folder.iterdir():
            run = Run.open(path)
            if run.status.state == "finished":
                return run, task
        shutil.rmtree(folder)  # an interrupted training starts again
    print(f"training {folder.name}", flush=True)
    folder.mkdir(parents=True)
    run = create_run(task, folder)
    fit(task, run)
    return Run.open(run.path), task


# a, b: language models


def train_language_model(runs: Path, text: str, seed: int) -> tuple[Run, Any]:
    """A character model with a checkpoint and a snapshot of attention at every 25th step."""
    settings = {
        "task": "language_model",
        "name": f"{text}-{seed}",
        "data": text,
        "network": LANGUAGE_MODEL,
        "validation_windows": NUM_WINDOWS,
        "training": {
            "steps": LANGUAGE_STEPS,
            "seed": seed,
            "validate_every": 150,
            "checkpoint_every": SNAPSHOT_EVERY,
            "keep_checkpoints": 1000,
        },
        "tracking": {"track_every": SNAPSHOT_EVERY, "maps_every": 1},
    }
    return train_or_reuse(runs / f"text-{text}-{seed}", settings)


def measure_over_training(run: Run, task: Any) -> ImportanceRecord:
    """Importance of all heads at every checkpoint; steps that were measured before are reused."""
    starts = task.validation_starts
    batch = task.windows.take(starts[np.linspace(0, len(starts) - 1, NUM_WINDOWS).astype(int)])
    record = load_importance(run.path)
    done = set() if record is None else set(record.steps.tolist())
    for checkpoint in run.checkpoints():
        if checkpoint.step in done:
            continue
        model = load_step(run, task, checkpoint.step)
        result = measure_head_importance(model, task.example_losses, [batch], with_pairs=False)
        header = ImportanceHeader(
            f"{NUM_WINDOWS} validation windows",
            result.method,
            result.examples,
            result.layers,
            result.heads,
            run.metadata("data/chance_loss"),
        )
        save_importance_step(run.path, header, convert_step(checkpoint.step, result))
    record = load_importance(run.path)
    assert record is not None
    return record


def load_step(run: Run, task: Any, step: int | Literal["newest"] = "newest") -> torch.nn.Module:
    """The model of a checkpoint."""
    checkpoint = run.load_checkpoint(step)
    assert checkpoint is not None
    return load_model(run, checkpoint, task)


def convert_step(step: int, result: HeadImportance) -> ImportanceStep:
    """A measurement as a step of importance.json."""
    return ImportanceStep(
        step,
        result.loss,
        result.loss_se,
        result.change,
        result.standard_error,
        result.gradient_estimate,
    )


def measure_entropy(run: Run, task: Any) -> dict[str, Any]:
    """Relative entropy [layer, head] at the last checkpoint, on each half of the windows."""
    model = load_step(run, task)
    outputs = record_head_outputs(
        model, task.windows.take(task.validation_starts)["x"], keep_weights=True
    )
    halves: list[list[Any]] = [[], []]
    for layer in outputs.layers:
        weights = layer.weights
        assert weights is not None
        visible = torch.arange(2, weights.shape[2] + 1)  # the first query sees one key only
        entropy = -torch.special.xlogy(weights, weights).sum(dim=-1)[:, :, 1:] / visible.log()
        for first, half in enumerate(halves):
            half.append(entropy[first::2].mean(dim=(0, 2)).tolist())
    return {"halves": halves}


@dataclass
class LanguageModelFigures:
    """A trained language model and what was measured."""

    run: Run
    record: ImportanceRecord
    entropy_halves: np.ndarray
    """Relative entropy at the end, [half, layer, head]."""

    @property
    def specialisation(self) -> np.ndarray:
        """−entropy, [layer, head]."""
        return -self.entropy_halves.mean(axis=0)

    @property
    def importance(self) -> np.ndarray:
        """Importance at the end, [layer, head]."""
        return self.record.change[-1]

    @property
    def reliability(self) -> float:
        """Share of the variance within layers that is no noise; geometric mean of both measures."""
        halves = correlate_heads(*self.entropy_halves).within_layers
        noise = (self.record.se[-1] ** 2).mean()
        signal = 1 - noise / self.importance.var(axis=1, ddof=1).mean()
        return math.sqrt(2 * halves / (1 + halves) * signal)


def load_language_models(
    runs: Path, texts: Sequence[str], seeds: Sequence[int]
) -> dict[str, list[LanguageModelFigures]]:
    """Trained and measured models by text."""
    models: dict[str, list[LanguageModelFigures]] = {text: [] for text in texts}
    for seed in seeds:
        for text in texts:
            run, task = train_language_model(runs, text, seed)
            record = measure_over_training(run, task)
            measure = partial(measure_entropy, run, task)
            entropy = measure_once(runs, f"entropy-{text}-{seed}", measure)
            models[text].append(LanguageModelFigures(run, record, np.array(entropy["halves"])))
    return models


# c, d: segmenters

LONG_TRAINING = {"epochs": 40, "learning_rate": 3e-3, "entropy_lambda": 0.0}
"""A higher rate and more epochs than the presets: heads become different, but predictions of unseen
documents too confident."""
ENTROPY, DIVERSITY = {"entropy_lambda": 0.08}, {"head_diversity_lambda": 1.0}
"""The published weight of the entropy, and a weight that makes heads different."""
LONG_MODEL, BOUNDARY_AWARE = {"attention_heads": 8}, {"attention_type": "boundary_aware"}
NO_ATTENTION = "no attention"
ARMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "published": ("document_small", BOUNDARY_AWARE, {}),
    "plain": ("document_small", LONG_MODEL, LONG_TRAINING),
    "entropy": ("document_small", LONG_MODEL, {**LONG_TRAINING, **ENTROPY}),
    "diversity": ("document_small", LONG_MODEL, {**LONG_TRAINING, **DIVERSITY}),
    "articles": ("articles", BOUNDARY_AWARE, {}),
    "articles-entropy": ("articles", BOUNDARY_AWARE, ENTROPY),
    "articles-diversity": ("articles", BOUNDARY_AWARE, DIVERSITY),
    "self": ("document_localized", {"attention_type": "self"}, {}),
    NO_ATTENTION: ("document_localized", {"attention_enabled": False}, {}),
}
"""Segmenters: preset, settings of the model and of the training that differ from it. The features of
`articles` are better than those of the others."""
COMPARISONS = {
    "plain": ("entropy", "diversity"),
    "articles": ("articles-entropy", "articles-diversity"),
}
"""Segmenters without regularisation, and the same with it."""


def train_segmenter(runs: Path, arm: str, seed: int) -> tuple[Run, Any]:
    """A segmenter of Python's help topics; test documents are of 30 % of the topics."""
    preset, model, training = ARMS[arm]
    settings = {
        "task": "segmentation",
        "name": f"segments-{arm.replace(' ', '-')}-{seed}",
        "preset": preset,
        "data": "handbook",
        "test_split": 0.3,
        "model": model,
        "training": {"seed": seed, **training},
        "tracking": {"track_every": 0},
    }
    return train_or_reuse(runs / f"segments-{arm}-{seed}", settings)


class TestDocuments:
    """Documents that neither training nor the choice of a checkpoint used, as one batch."""

    def __init__(self, run: Run, task: Any) -> None:
        documents = load_task_documents(task.settings, Path()).test
        features = resolve_features(task.settings.features)
        self.examples = make_examples(documents, features, task.classes)
        self.batch = collate_examples(self.examples)
        self.mask = self.batch["mask"]
        self.is_gap = mask_gaps(self.mask, self.batch["first"]).numpy()
        self.lengths = self.mask.sum(dim=1)
        self.model: Any = load_best_model(run.path, task)
        self.task = task
        self.threshold = float(task.evaluate(self.model)["valid/threshold"])

    @property
    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Arguments of the model."""
        return self.batch["x"], self.mask

    def predict(self) -> np.ndarray:
        """Boundary probabilities, (documents, elements)."""
        with torch.no_grad():
            return self.model(*self.inputs)[..., 1].numpy()

    def score(self, probabilities: np.ndarray) -> float:
        """Boundary F1 over all documents, at the threshold of the validation documents."""
        truth = self.batch["boundaries"].numpy() & self.is_gap
        predicted = (probabilities > self.threshold) & self.is_gap
        hits = (truth & predicted).sum()
        return float(2 * hits / max(1, truth.sum() + predicted.sum()))

    def take_from_others(self, values: torch.Tensor, shift: int) -> torch.Tensor:
        """Values (documents, …, elements, D) of another document each, repeated to the length.

        Document i takes those of document i + `shift`; element t those of t modulo the other's
        length.
        """
        count, longest = self.mask.shape
        donors = (torch.arange(count) + shift) % count
        positions = torch.arange(longest)[None] % self.lengths[donors][:, None]
        index = positions.view(count, *[1] * (values.ndim - 3), longest, 1)
        return values[donors].gather(-2, index.expand(*values.shape[:-1], values.shape[-1]))

    def average_correlation(self, first: np.ndarray, second: np.ndarray) -> float:
        """Spearman correlation over the gaps of each document, averaged over documents."""
        values = [
            spearmanr(first[row][gaps], second[row][gaps]).statistic
            for row, gaps in enumerate(self.is_gap)
            if gaps.sum() > 3 and np.ptp(first[row][gaps]) > 0 and np.ptp(second[row][gaps]) > 0
        ]
        return float(np.mean(values)) if values else math.nan


def measure_segmenter_heads(run: Run, task: Any) -> dict[str, float]:
    """Necessary heads, concentration of importance, cost of removing all heads."""
    documents = TestDocuments(run, task)
    model, batch, objective = documents.model, documents.batch, documents.task.example_losses
    result = measure_head_importance(model, objective, [batch], with_pairs=False)
    rate = float(batch["boundaries"].numpy()[documents.is_gap].mean())
    chance_loss = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    header = ImportanceHeader(
        "test documents",
        result.method,
        result.examples,
        result.layers,
        result.heads,
        chance_loss,
    )
    with tempfile.TemporaryDirectory() as folder:
        save_importance_step(Path(folder), header, convert_step(0, result))
        record = load_importance(Path(folder))
    assert record is not None
    necessity = decide_necessity(record)
    outputs = record_head_outputs(model, documents.inputs, keep_weights=True)
    with intervene(model, replace_by_mean("all", outputs)), torch.no_grad():
        losses = objective(model, batch)
        without = documents.predict()
    weights = outputs[0].weights
    assert weights is not None
    entropy = (
        -torch.special.xlogy(weights, weights).sum(dim=-1) / documents.lengths.log()[:, None, None]
    )
    rows = weights.transpose(1, 2)[documents.mask]  # (elements, H, K)
    products = torch.einsum("ngk,nhk->gh", rows, rows)
    own, count = products.trace(), len(products)
    similarity = float((products.sum() - own) / ((count - 1) * own))
    predicted = documents.predict()
    p = predicted[documents.is_gap].clip(1e-12, 1 - 1e-12)
    return {
        "loss": result.loss,
        "learned": chance_loss - result.loss,
        "f1": documents.score(predicted),
        "heads": float(result.change.size),
        "necessary": float(necessity.is_necessary[-1].sum()),
        "without_effect": float(necessity.is_without_effect[-1].sum()),
        "gini": measure_gini(result.change),
        "effective_heads": count_effective_heads(result.change),
        "mean_change": float(np.nanmean(result.change)),
        "largest_change": float(np.nanmax(result.change)),
        "all_heads_change": float(losses.nanmean()) - result.loss,
        "all_heads_f1": documents.score(without) - documents.score(predicted),
        "relative_entropy": float(entropy.mean(dim=1)[documents.mask].mean()),
        "head_similarity": similarity,
        "output_entropy": float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean()),
    }


def measure_f1(run: Run, task: Any) -> dict[str, float]:
    """Boundary F1 of the test documents."""
    documents = TestDocuments(run, task)
    return {"f1": documents.score(documents.predict())}


@contextmanager
def replace_boundary_scores(model: Any, scores: torch.Tensor) -> Iterator[None]:
    """Replace what the boundary scorer inside the attention says, (B, T)."""
    handle = model.attention.heads.learned.register_forward_hook(lambda *_: scores)
    try:
        yield
    finally:
        handle.remove()


def record_boundary_scores(documents: TestDocuments) -> torch.Tensor:
    """Boundary scores inside the attention, (B, T)."""
    recorded: list[torch.Tensor] = []
    scorer = documents.model.attention.heads.learned
    handle = scorer.register_forward_hook(lambda module, args, output: recorded.append(output))
    try:
        documents.predict()
    finally:
        handle.remove()
    return recorded[0].detach()


def measure_boundary_bias(run: Run, task: Any) -> dict[str, float]:
    """Effects of other boundary scores, other values and other head outputs on the boundaries.

    Names are `intervention/figure`. Figures of interventions with another document are means over
    NUM_DONORS of them for each document:

        moved      mean absolute change of a boundary probability
        flipped    share of gaps whose decision changes
        f1         change of F1
        towards    slope of the change on the difference to the other document's probability: 1 if
                   the boundaries become those of the other document, 0 if they do not move there
        follows    rank correlation of the other document's scores with the change of the logit,
                   within documents. Own scores are not used: they are related to everything else
                   in their document, those of a random other document are not
    """
    documents = TestDocuments(run, task)
    model, gaps = documents.model, documents.is_gap
    before, scores = documents.predict(), record_boundary_scores(documents)
    layer = record_head_outputs(model, documents.inputs, keep_weights=True)[0]
    hidden = record_input(documents, model.attention)
    assert layer.weights is not None
    figures: dict[str, list[float]] = {
        "f1": [documents.score(before)],
        "score_std": [float(scores[documents.mask].std())],
        "score_by_truth": [
            documents.average_correlation(
                scores.numpy(), documents.batch["boundaries"].numpy().astype(float)
            )
        ],
    }

    def add(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)

    def add_effect(name: str, after: np.ndarray, shift: int = 0, *, is_bias: bool = False) -> None:
        add(f"{name}/moved", float(np.abs(after - before)[gaps].mean()))
        add(f"{name}/f1", documents.score(after) - figures["f1"][0])
        flipped = (after > documents.threshold) != (before > documents.threshold)
        add(f"{name}/flipped", float(flipped[gaps].mean()))
        if not shift:
            return
        other = documents.take_from_others(torch.from_numpy(before)[..., None], shift)[..., 0]
        towards, change = (other.numpy() - before)[gaps], (after - before)[gaps]
        add(f"{name}/towards", float(change @ towards / (towards @ towards)))
        if is_bias:
            donated = documents.take_from_others(scores[..., None], shift)[..., 0].numpy()
            logit_change = logit(after.astype(float)) - logit(before.astype(float))
            add(f"{name}/follows", documents.average_correlation(donated, logit_change))

    mean_score = scores[documents.mask].mean()
    for name, new_scores in (
        ("bias zero", torch.zeros_like(scores)),
        ("bias mean", mean_score.expand_as(scores).contiguous()),
    ):
        with replace_boundary_scores(model, new_scores):
            add_effect(name, documents.predict())
    with intervene(model, replace_by_mean("all", HeadOutputs([layer]))):
        add_effect("head outputs mean", documents.predict())
    for shift in range(1, NUM_DONORS + 1):
        donated = documents.take_from_others(scores[..., None], shift)[..., 0]
        for name, factor in (("bias", 1.0), (f"bias x {LARGE_FACTOR}", float(LARGE_FACTOR))):
            with replace_boundary_scores(model, factor * donated):
                add_effect(name, documents.predict(), shift, is_bias=True)
        for name, output in (
            ("values", layer.weights @ documents.take_from_others(layer.values, shift)),
            ("head outputs", documents.take_from_others(layer.output, shift)),
        ):
            source = HeadOutputs([replace(layer, output=output)])
            with intervene(model, patch("all", source)):
                add_effect(name, documents.predict(), shift)
        with replace_input(model.attention, documents.take_from_others(hidden, shift)):
            add_effect("LSTM outputs", documents.predict(), shift)
    return {name: float(np.mean(values)) for name, values in figures.items()}


LARGE_FACTOR = 20
"""Factor of the bias in a control: 20 · s / 2 is a difference of up to 10 between scores."""


def record_input(documents: TestDocuments, module: torch.nn.Module) -> torch.Tensor:
    """First input of a module, when the model reads the documents."""
    recorded: list[torch.Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, args: recorded.append(args[0].detach()))
    try:
        documents.predict()
    finally:
        handle.remove()
    return recorded[0]


@contextmanager
def replace_input(module: torch.nn.Module, value: torch.Tensor) -> Iterator[None]:
    """Replace the first input of a module."""
    handle = module.register_forward_pre_hook(lambda _, args: (value, *args[1:]))
    try:
        yield
    finally:
        handle.remove()


# e: focus models

PARADIGMS = ("soft", "hard", "lvml", "hybrid")
SAIF_THRESHOLD = 0.8


def train_focus_model(runs: Path, paradigm: str, seed: int) -> tuple[Run, Any]:
    """The model of examples/focus/digits.yaml."""
    settings = {
        "task": "focus",
        "name": f"focus-{paradigm}-{seed}",
        "data": "digits",
        "paradigm": paradigm,
        "segments": 10,
        "foreground": (7, 8, 9),
        "examples": 51200,
        "focus": "focus.neural",
        "classifier": "classifier.neural",
        "training": {
            "steps": 400,
            "batch_size": 128,
            "optimizer": "AdamW(learning_rate=0.01, weight_decay=0.3)",
            "scheduler": "cosine",
            "validate_every": 50,
            "seed": seed,
        },
    }
    return train_or_reuse(runs / f"focus-{paradigm}-{seed}", settings)


def measure_focus_dependence(run: Run, task: Any) -> dict[str, float]:
    """How much the answer depends on segments, on the test mosaics."""
    model = load_best_model(run.path, task)
    batch = task.data.splits["test"].take(slice(None))
    members, labels, foreground = batch["members"], batch["y"], batch["foreground"].int().argmax(1)
    rows, count = torch.arange(len(labels)), members.shape[1]
    random = torch.Generator().manual_seed(0)
    paradigm = task.current_paradigm(model)

    def predict(new_members: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            segments = task.score_batch(model, {"members": new_members, "y": labels})
            return paradigm.predict(segments).exp(), paradigm.focus_weights(segments.scores)

    def choose_other(position: torch.Tensor) -> torch.Tensor:
        """A random position of each example that is not `position`."""
        return (position + torch.randint(1, count, position.shape, generator=random)) % count

    p, focus = predict(members)
    answer, attended = p.argmax(dim=1), focus.argmax(dim=1)
    p_answer, p_label = p[rows, answer], p[rows, labels]
    drops: dict[str, torch.Tensor] = {}

    def add_drop(name: str, target: torch.Tensor, new_members: torch.Tensor) -> None:
        new_p, _ = predict(new_members)
        drops.setdefault(f"{name}/answer", torch.zeros(len(labels)))
        drops.setdefault(f"{name}/label", torch.zeros(len(labels)))
        drops.setdefault(f"{name}/changed", torch.zeros(len(labels)))
        drops.setdefault(f"{name}/follows", torch.zeros(len(labels)))
        drops[f"{name}/answer"] += (p_answer - new_p[rows, answer]) / NUM_DONORS
        drops[f"{name}/label"] += (p_label - new_p[rows, labels]) / NUM_DONORS
        drops[f"{name}/changed"] += (new_p.argmax(dim=1) != answer).float() / NUM_DONORS
        drops[f"{name}/follows"] += (new_p.argmax(dim=1) == target).float() / NUM_DONORS

    def put(position: torch.Tensor, segment: torch.Tensor) -> torch.Tensor:
        new_members = members.clone()
        new_members[rows, position] = segment
        return new_members

    for _ in range(NUM_DONORS):
        # the donor has another label and another answer, so that the answer can change
        donor = _choose_donors(answer, labels, random)
        own_other, donor_other = choose_other(attended), choose_other(attended)[donor]
        add_drop("swapped", answer[donor], put(attended, members[donor, attended[donor]]))
        add_drop("attended", answer[donor], put(attended, members[donor, donor_other]))
        add_drop("unattended", answer[donor], put(own_other, members[donor, donor_other]))
        add_drop("foreground", labels[donor], put(foreground, members[donor, foreground[donor]]))
    mass = focus[rows, foreground]
    is_confident, is_focused = p_label > SAIF_THRESHOLD, mass > SAIF_THRESHOLD
    is_saif, is_other = is_confident & is_focused, is_confident & ~is_focused
    remaining = p_label - drops["foreground/label"]
    is_dependent = is_confident & (remaining < 1 - SAIF_THRESHOLD)
    dependence = 1 - remaining / p_label  # a share, because confident answers have more to lose
    figures = {name: float(values.mean()) for name, values in drops.items()}
    return figures | {
        "accuracy": float((answer == labels).float().mean()),
        "saif": float(is_saif.float().mean()),
        "confident": float(is_confident.float().mean()),
        "causal_saif": float(is_dependent.float().mean()),
        "saif_dependence": float(dependence[is_saif].mean()),
        "other_dependence": float(dependence[is_other].mean()),
        "other_count": float(is_other.sum()),
        "other_mass": float(mass[is_other].mean()),
        "mass_correlation": float(
            spearmanr(mass[is_confident].numpy(), dependence[is_confident].numpy()).statistic
        ),
    }


def _choose_donors(
    answer: torch.Tensor, labels: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """For each example, a random one with another label and another answer, answered correctly."""
    order = torch.randperm(len(labels), generator=random)
    donors = torch.zeros_like(labels)
    for own_answer in labels.unique():
        for own_label in labels.unique():
            rows = ((answer == own_answer) & (labels == own_label)).nonzero().squeeze(1)
            is_candidate = (answer == labels) & (labels != own_answer) & (labels != own_label)
            candidates = order[is_candidate[order]]
            start = torch.arange(len(rows)) % max(1, len(candidates))
            donors[rows] = candidates[start]
    return donors


# verdicts


def measure_once(
    runs: Path, name: str, measure: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """Figures of one model; read from a file if they were measured before."""
    path = runs / "figures" / f"{name}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(measure(), indent=1))
    return json.loads(path.read_text())


def describe(values: Sequence[float], *, percent: bool = False) -> str:
    """The mean over seeds with its interval."""
    estimate = estimate_mean(values)
    return f"{estimate.to_percent()} %" if percent else str(estimate)


def decide(estimate: Estimate) -> str:
    """Supported if the interval is above 0, refuted if below, else undecided."""
    if estimate.n < MIN_SEEDS or not (estimate.low > 0 or estimate.high < 0):
        return "undecided"
    return "supported" if estimate.low > 0 else "refuted"


def print_row(*cells: str) -> None:
    """A row of a table in Markdown."""
    print("| " + " | ".join(cells) + " |", flush=True)


def report_specialisation(models: dict[str, list[LanguageModelFigures]]) -> None:
    """a: rank correlation of −entropy and importance.

    A verdict needs an interval over seeds without 0 and a significant permutation test; "unrelated"
    an interval within ± SMALL_CORRELATION, divided by the reliability.
    """
    print("\na. Do specialised heads matter more? Rank correlation of −entropy and importance")
    print_row("text", "loss, nats", "all heads", "within layers", "p", "reliability", "verdict")
    groups = {**models, "all": [model for text in models.values() for model in text]}
    for text, group in groups.items():
        specialisation = [model.specialisation for model in group]
        importance = [model.importance for model in group]
        pairs = zip(specialisation, importance, strict=True)
        # [text, seed, statistic]: the models of a seed have the same weights at the start
        correlations = np.reshape(
            [correlate_heads(*pair) for pair in pairs], (-1, len(next(iter(models.values()))), 2)
        ).mean(axis=0)
        within = estimate_mean(correlations[:, 1].tolist())
        test = compare_with_permutations(specialisation, importance)
        reliability = float(np.mean([model.reliability for model in group]))
        verdict = decide(within) if test.within_layers_p <= SIGNIFICANCE_LEVEL else "undecided"
        if verdict == "undecided" and within.n >= MIN_SEEDS:
            largest = max(abs(within.low), abs(within.high)) / reliability
            verdict = "unrelated" if largest < SMALL_CORRELATION else verdict
        print_row(
            text,
            describe([float(model.record.loss[-1]) for model in group]),
            describe(correlations[:, 0].tolist()),
            str(within),
            f"{test.within_layers_p:.3f}",
            f"{reliability:.2f}",
            verdict,
        )
    print_row("text", "heads", "necessary", "without effect", "Gini", "effective heads")
    for text, group in models.items():
        necessity = [decide_necessity(model.record) for model in group]
        changes = [model.importance for model in group]
        heads = [values.size for values in changes]
        necessary = [int(result.is_necessary[-1].sum()) for result in necessity]
        idle = [int(result.is_without_effect[-1].sum()) for result in necessity]
        print_row(
            text,
            str(sum(heads)),
            f"{estimate_share(necessary, heads).to_percent()} %",
            f"{estimate_share(idle, heads).to_percent()} %",
            describe([measure_gini(values) for values in changes]),
            describe([count_effective_heads(values) for values in changes]),
        )


def report_order(models: dict[str, list[tuple[Run, ImportanceRecord]]]) -> None:
    """b: time of a head's pattern minus time of its importance."""
    print("\nb. Pattern minus importance, in steps: above 0, importance comes first")
    print_row(
        "text",
        "necessary heads",
        "half rises of pattern − importance",
        "verdict",
        "half rises of −entropy − importance",
        "order of heads",
        "heads with a role",
        "onsets of role − necessity",
    )
    for text, group in models.items():
        rows = [measure_order(run, record) for run, record in group]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        estimate = estimate_mean(columns["pattern"])
        words = {"supported": "importance first", "refuted": "pattern first"}
        print_row(
            text,
            str(int(sum(columns["heads"]))),
            str(estimate),
            words.get(decide(estimate), "undecided"),
            describe(columns["entropy"]),
            describe(columns["order"]),
            str(int(sum(columns["roles"]))),
            describe(columns["onset"]),
        )


MIN_PATTERN_RISE = 0.05
"""Smallest rise of a pattern's score that is timed."""
MIN_ORDERED_HEADS = 4
"""Fewer heads have no order of their rises."""


def measure_order(run: Run, record: ImportanceRecord) -> dict[str, float]:
    """Mean differences over the necessary heads of a model, in steps; NaN without any."""
    necessity, roles = decide_necessity(record), load_roles(run)
    rises = np.array(find_rises(run, record)).reshape(-1, 3)
    timed = rises[np.isfinite(rises[:, :2]).all(axis=1)]
    onsets = [
        roles[head].onset - (necessity.find_onset_step(*head) or 0)
        for head in necessity.list_necessary_heads()
        if head in roles
    ]
    return {
        "heads": float(len(timed)),
        "pattern": float((timed[:, 0] - timed[:, 1]).mean()) if len(timed) else math.nan,
        "entropy": float(np.nanmean(timed[:, 2] - timed[:, 1])) if len(timed) else math.nan,
        "order": float(spearmanr(timed[:, 0], timed[:, 1]).statistic)
        if len(timed) >= MIN_ORDERED_HEADS
        else math.nan,
        "roles": float(len(onsets)),
        "onset": float(np.mean(onsets)) if onsets else math.nan,
    }


def find_rises(run: Run, record: ImportanceRecord) -> list[tuple[float, float, float]]:
    """Half rises of pattern, importance and −entropy of each necessary head, in steps.

    The pattern is the role whose last score is the largest multiple of its threshold.
    """
    roles = find_head_roles(run)
    entropy_steps, entropy = load_measure(run, "relative_entropy")
    rises = []
    for layer, head in decide_necessity(record).list_necessary_heads():
        scores = {
            name: role.scores[:, layer, head] for name, role in roles.items() if name != "uniform"
        }
        last = {name: float(np.nanmean(values[-3:])) for name, values in scores.items()}
        name = max(last, key=lambda name: last[name] / ROLE_THRESHOLDS[name])
        is_timed = last[name] - scores[name][0] >= MIN_PATTERN_RISE
        rises.append(
            (
                find_half_rise(roles[name].steps, scores[name]) if is_timed else math.nan,
                find_half_rise(record.steps, record.change[:, layer, head]),
                find_half_rise(entropy_steps, -entropy[:, layer, head]),
            )
        )
    return rises


def load_induction_models(folder: Path, seeds: Sequence[int]) -> list[tuple[Run, ImportanceRecord]]:
    """Models that benchmarks/induction_phase.py has trained and measured, in `folder`."""
    models = []
    for seed in seeds:
        for path in sorted(folder.glob(f"*_induction-{seed}")):
            record = load_importance(path)
            if record is not None:
                models.append((Run.open(path), record))
    return models


def measure_segmenters(
    runs: Path, arm: str, seeds: Sequence[int], part: str
) -> dict[str, list[float]]:
    """Figures of all seeds of an arm."""
    measure = {
        "heads": measure_segmenter_heads,
        "bias": measure_boundary_bias,
        "f1": measure_f1,
    }[part]
    rows = []
    for seed in seeds:
        trained = train_segmenter(runs, arm, seed)
        rows.append(measure_once(runs, f"{part}-{arm}-{seed}", partial(measure, *trained)))
    return {name: [row[name] for row in rows] for name in rows[0]}


def report_regularisation(runs: Path, seeds: Sequence[int]) -> None:
    """c: importance of the heads of segmenters with and without regularisation."""
    print("\nc. Regularised segmenters: difference to the same without, pairs of seeds")
    figures = {
        arm: measure_segmenters(runs, arm, seeds, "heads") for arm in ARMS if arm != NO_ATTENTION
    }
    for plain, regularised in COMPARISONS.items():
        print_row("figure", plain, *(f"{arm} − {plain}" for arm in regularised))
        for name in figures[plain]:
            if name in COUNTED:
                continue
            differences = [
                estimate_mean(np.subtract(figures[arm][name], figures[plain][name]).tolist())
                for arm in regularised
            ]
            print_row(name, describe(figures[plain][name]), *map(str, differences))
    print("All heads of a segmenter removed")
    print_row("segmenter", "F1", "change of F1", "learned, nats", "change of loss", *COUNTED[1:])
    for arm, values in figures.items():
        names = ("f1", "all_heads_f1", "learned", "all_heads_change")
        heads = [int(count) for count in values["heads"]]
        shares = [
            f"{sum(map(int, values[name]))} of {sum(heads)}, "
            f"{estimate_share([int(count) for count in values[name]], heads).to_percent()} %"
            for name in COUNTED[1:]
        ]
        print_row(arm, *(describe(values[name]) for name in names), *shares)
    without = np.array(measure_segmenters(runs, NO_ATTENTION, seeds, "f1")["f1"])
    complete = np.array(figures["self"]["f1"])
    removed = complete + figures["self"]["all_heads_f1"]
    print_row(NO_ATTENTION, describe(without.tolist()))
    print(f"F1 of self − {NO_ATTENTION}: {describe((complete - without).tolist())}")
    print(f"the same, heads of self removed: {describe((removed - without).tolist())}")


COUNTED = ("heads", "necessary", "without_effect")
"""Figures that are numbers of heads."""


def report_boundary_bias(runs: Path, seeds: Sequence[int]) -> None:
    """d: what other boundary scores change."""
    print("\nd. Other boundary scores in boundary-aware attention: changes of the boundaries")
    for arm in ("published", "articles", "plain", "diversity"):
        figures = measure_segmenters(runs, arm, seeds, "bias")
        f1, spread, truth = (
            describe(figures[name]) for name in ("f1", "score_std", "score_by_truth")
        )
        print(f"{arm}: F1 {f1}, std of scores {spread}, correlation with the truth {truth}")
        print_row("replaced", "moved", "flipped", "F1", "towards", "follows", "verdict")
        for name in dict.fromkeys(name.partition("/")[0] for name in figures if "/" in name):
            effects = {
                key: figures.get(f"{name}/{key}", [])
                for key in ("moved", "flipped", "f1", "towards", "follows")
            }
            verdict = decide(estimate_mean(effects["follows"])) if effects["follows"] else ""
            print_row(name, *(describe(values) for values in effects.values()), verdict)


def report_focus(runs: Path, seeds: Sequence[int]) -> None:
    """e: dependence of answers on segments, and SAIF."""
    print("\ne. Drop of the answer's probability, and share of changed answers")
    figures: dict[str, dict[str, list[float]]] = {}
    for paradigm in PARADIGMS:
        rows = []
        for seed in seeds:
            trained = train_focus_model(runs, paradigm, seed)
            name = f"focus-{paradigm}-{seed}"
            rows.append(measure_once(runs, name, partial(measure_focus_dependence, *trained)))
        figures[paradigm] = {name: [row[name] for row in rows] for name in rows[0]}
    print_row("figure", *figures)
    for name in figures["soft"]:
        print_row(name, *(describe(values[name]) for values in figures.values()))
    for title, first, second in (
        ("attended − unattended", "attended/answer", "unattended/answer"),
        ("SAIF − causal SAIF", "saif", "causal_saif"),
        ("dependence of SAIF − other confident answers", "saif_dependence", "other_dependence"),
    ):
        differences = [
            estimate_mean(np.subtract(values[first], values[second]).tolist())
            for values in figures.values()
        ]
        print_row(title, *(f"{value}: {decide(value)}" for value in differences))
    for name in ("saif", "causal_saif"):
        differences = [
            estimate_mean(np.subtract(values[name], figures["lvml"][name]).tolist())
            for values in figures.values()
        ]
        print_row(f"{name} − that of lvml", *map(str, differences))


def main() -> None:
    """Train what is missing, measure, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices="abcde", default=list("abcde"))
    parser.add_argument("--runs", type=Path, default=Path("runs/causal_claims"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--texts", nargs="+", default=list(TEXTS))
    parser.add_argument(
        "--induction", type=Path, help="folder of the runs of induction_phase.py, for b"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    if {"a", "b"} & set(options.only):
        models = load_language_models(options.runs, options.texts, options.seeds)
        if "a" in options.only:
            report_specialisation(models)
        if "b" in options.only:
            pairs = {
                text: [(model.run, model.record) for model in group]
                for text, group in models.items()
            }
            if options.induction is not None:
                pairs["induction"] = load_induction_models(options.induction, options.seeds)
            report_order(pairs)
    if "c" in options.only:
        report_regularisation(options.runs, options.seeds)
    if "d" in options.only:
        report_boundary_bias(options.runs, options.seeds)
    if "e" in options.only:
        report_focus(options.runs, options.seeds)


if __name__ == "__main__":
    main()

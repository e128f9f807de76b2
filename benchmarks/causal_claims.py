"""What heads are for: claims about attention, decided by interventions on trained models.

    python benchmarks/causal_claims.py [--only a b c d e] [--runs FOLDER] [--seeds 0 1 2 3 4]

    a   Do specialised heads (low entropy) matter more?
    b   Does a head's pattern come before or after its importance?
    c   Do entropy regularisation and head diversity change which heads matter?
    d   Does the bias of boundary-aware attention cause the segmenter's boundaries?
    e   Does a focus model's answer depend on the segment that it attends to, as SAIF says?

Trains small models first, one after another; finished runs and measurements are reused, so an
interrupted benchmark resumes. a and b use tiny Shakespeare, enwik8 and text8 (the folder that
NEURAL_DATA names), or other texts with --texts; c and d Python's help topics; e the digits of
scikit-learn. The seed is the unit of all intervals. Settings were chosen with seed 100.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from neural.analysis.change_points import MAD_TO_STD
from neural.analysis.confidence_intervals import SeedEstimate, estimate_mean, estimate_share
from neural.analysis.head_necessity import decide_necessity
from neural.analysis.head_roles import ROLE_THRESHOLDS, assign_head_roles, find_head_roles
from neural.analysis.importance_statistics import (
    correlate_heads,
    count_effective_heads,
    find_half_rise,
    measure_gini,
    compare_with_permutations,
)
from neural.capture.head_importance import HeadImportance, measure_head_importance
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import HeadOutputs, patch, replace_by_mean
from neural.core.experiment import Experiment
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceRecord,
    ImportanceStep,
    load_importance,
    save_importance_step,
)
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.training.engine import fit
from neural.workflows.load_model import load_best_model, load_model
from neural.workflows.load_task import create_task
from neural.workflows.train import create_run

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


def token_losses(model: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of every character, (B, T)."""
    logits = model.logits(batch["x"])
    return functional.cross_entropy(logits.transpose(1, 2), batch["y"], reduction="none")


def measure_over_training(run: Run, task: Any) -> ImportanceRecord:
    """Importance of all heads at every checkpoint; steps that were measured before are reused."""
    starts = task.validation_starts
    batch = task.windows.take(starts[np.linspace(0, len(starts) - 1, NUM_WINDOWS).astype(int)])
    record = load_importance(run.path)
    done = set() if record is None else set(record.steps.tolist())
    for checkpoint in run.checkpoints():
        if checkpoint.step in done:
            continue
        model = load_model(run, run.load_checkpoint(checkpoint.step), task)
        result = measure_head_importance(model, token_losses, [batch], with_pairs=False)
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


def load_language_models(
    runs: Path, texts: Sequence[str], seeds: Sequence[int]
) -> dict[str, list[tuple[Run, ImportanceRecord]]]:
    """Trained and measured models by text."""
    models: dict[str, list[tuple[Run, ImportanceRecord]]] = {text: [] for text in texts}
    for seed in seeds:
        for text in texts:
            run, task = train_language_model(runs, text, seed)
            models[text].append((run, measure_over_training(run, task)))
    return models


# c, d: segmenters

ARMS: dict[str, dict[str, float]] = {
    "plain": {},
    "entropy": {"entropy_lambda": 0.08},
    "diversity": {"head_diversity_lambda": 1.0},
}
"""Settings of the loss; 0.08 is the published weight of the entropy."""


def train_segmenter(runs: Path, arm: str, seed: int) -> tuple[Run, Any]:
    """A segmenter with boundary-aware attention; test documents are 30 % of all."""
    settings = {
        "task": "segmentation",
        "name": f"segments-{arm}-{seed}",
        "preset": "document_small",
        "data": "handbook",
        "test_split": 0.3,
        "training": {
            "seed": seed,
            "epochs": SEGMENTER_EPOCHS,
            "learning_rate": SEGMENTER_RATE,
            "entropy_lambda": 0.0,
            **ARMS[arm],
        },
        "tracking": {"track_every": 0},
    }
    return train_or_reuse(runs / f"segments-{arm}-{seed}", settings)


def load_test_examples(task: Any) -> list[Any]:
    """Examples of the test documents, which neither training nor the choice of a checkpoint used."""
    documents = load_task_documents(task.settings, Path()).test
    return make_examples(documents, resolve_features(task.settings.features), task.classes)


def element_losses(model: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Log loss of every gap, (B, T); NaN elsewhere."""
    logits = model.logits(batch["x"], batch["mask"])
    losses = functional.cross_entropy(logits.transpose(1, 2), batch["target"], reduction="none")
    is_gap = mask_gaps(batch["mask"], batch["first"])
    return losses.masked_fill(~is_gap, math.nan)

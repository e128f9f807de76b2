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
    test_head_correlation,
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
LANGUAGE_MODEL = """network Heads {{
  input: (64,)
  layers:
    Embedding(input_dim={vocabulary}, output_dim=64)
    TransformerDecoder(
      num_heads=8,
      d_model=64,
      dff=256,
      {options}
      final_norm=true,
      bias=false,
    ) * 3
    Output({vocabulary}, activation="softmax", bias=false)

  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(
    learning_rate=CosineDecay(4e-3, 550, alpha=0.1, warmup_steps=50),
    beta_2=0.99,
    weight_decay=0.1,
  )
  train {{
    steps: 600
    batch_size: 16
    clip_norm: 1.0
  }}
}}
"""

"""Train every case of test_equality.py in one process and in a pair of processes.

    python -m tests.training.equality FOLDER

The pair is started once: this process forks, and both join one group (gloo). Each training leaves
its run in FOLDER/CASE/MODE. A step is always made of the same 16 examples.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.experiment import Experiment
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.training.engine import fit
from neural.training.load_task import create_task
from neural.training.process_group import ProcessGroup
from neural.workflows.train import create_run

PROCESSES = 2
BATCHES = {"full": (16, 1), "accumulation": (4, 4), "ddp": (4, 2), "fsdp": (4, 2)}
"""For each mode: examples per batch, and batches per step and process."""
DISTRIBUTED_MODES = ("ddp", "fsdp")
OPTIMIZERS = {
    "sgd": "SGD(learning_rate=0.1, momentum=0.9)",
    "adam": "Adam(learning_rate=0.01)",
    "adamw": "AdamW(learning_rate=0.01)",
    "muon": "Muon(learning_rate=0.02)",
}
# No bias before a norm or in the keys: its exact gradient is 0, and Adam, which divides by the size
# of the gradient, would turn the rounding errors that are left into steps of full length.
PROGRAM = """network Tagger {
  input: (7, 5)
  layers:
    Dense(8, activation="tanh")
    %s
    TransformerEncoder(num_heads=2, d_model=8, dff=12, dropout_rate=0.0, bias=false)
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


class Case(NamedTuple):
    """A row of the table of equal trainings."""

    optimizer: str
    ema: bool
    padding: bool
    batch_norm: bool

    @property
    def name(self) -> str:
        """Name of its folder and test id: `adamw-ema-padding`."""
        flags = [name for name in ("ema", "padding", "batch_norm") if getattr(self, name)]
        return "-".join([self.optimizer, *flags])

    def settings(self, folder: Path) -> dict[str, Any]:
        """Settings of the experiment, without those that depend on the mode."""
        return {
            "task": "supervised",
            "data": str(folder / f"padding-{self.padding}.npz"),
            "validation_split": 0.2,
            "network": PROGRAM % ("BatchNormalization()" if self.batch_norm else ""),
            "training": {
                "epochs": 1.5,
                "scheduler": "linear",
                "optimizer": OPTIMIZERS[self.optimizer],
                "clip_norm": 1.0,
                "ema": 0.9 if self.ema else 0.0,
            },
        }


SGD = {"optimizer": "SGD(learning_rate=0.1)", "epochs": 2.0}
FOCUS = {"task": "focus", "data": "segments.npz", "training": SGD}
TRACKED = Case("adamw", ema=True, padding=True, batch_norm=True)
RESUMED = Case("muon", ema=True, padding=True, batch_norm=True)
OTHERS: dict[str, dict[str, Any]] = {
    "tracked": {
        **TRACKED.settings(Path()),
        "data": "padding-True.npz",
        "tracking": {"track_every": 2},
        "training": {
            **TRACKED.settings(Path())["training"],
            "validate_every": 2,
            "checkpoint_every": 1,
        },
    },
    "hybrid-step": {**FOCUS, "paradigm": 'hybrid(switch="step")'},
    "hybrid-incentive": {**FOCUS, "paradigm": "hybrid(check_every=2, checks=1)"},
    "annealed": {**FOCUS, "paradigm": "annealed"},
    "captions": {
        "task": "captions",
        "grid": 2,
        "units": 8,
        "examples": 48,
        "valid_examples": 5,
        "test_examples": 5,
        "training": SGD,
    },
    "segmentation": {
        "task": "segmentation",
        "data": "documents.jsonl",
        "features": ["word_overlap", "shape"],
        "model": {
            "hidden_dim": 3,
            "num_layers": 2,
            "attention_type": "boundary_aware",
            "attention_heads": 2,
            "attention_dim": 4,
        },
        "training": {
            **SGD,
            "class_weights": "balanced",
            "boundary_weight": 2.0,
            "entropy_lambda": 0.01,
            "head_diversity_lambda": 0.1,
            "label_smoothing": 0.1,
        },
    },
    "language_model": {
        "task": "language_model",
        "data": "numbers.txt",
        "preset": "tiny",
        "context": 8,
        "training": {"epochs": 4.0},
    },
}
"""A run with snapshots and validations between its steps; other tasks, with schedules that depend
on the length of the training."""
EQUAL_TO_FULL = ("hybrid-step", "annealed", "captions")
"""Tasks whose batch of 16 has the examples of four batches of 4. Others sample batches or sort them
by length; a switch by incentive is decided by the first batch of a step."""
TABLE = [
    Case(*values) for values in product(OPTIMIZERS, (False, True), (False, True), (False, True))
]


def write_data(folder: Path) -> None:
    """80 sequences of 7 vectors with a class per position; with padding, of 1 to 7 vectors."""
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 7, 5)).astype(np.float32)
    y = x[:, :, :3].argmax(axis=-1)
    mask = np.arange(7) < random.integers(1, 8, size=80)[:, None]
    np.savez(folder / "padding-False.npz", x=x, y=y)
    np.savez(folder / "padding-True.npz", x=x, y=y, mask=mask)
    labels, foreground = random.integers(3, size=80), random.integers(5, size=80)
    features = 0.1 * random.normal(size=(80, 5, 4)).astype(np.float32)
    features[np.arange(80), foreground, labels] += 1.0
    np.savez(folder / "segments.npz", segments=features, labels=labels, foreground=foreground)
    words, rows = (("apple", "pear", "plum"), ("saw", "file", "drill")), []
    for number in range(40):
        topics = [words[(number + segment) % 2] for segment in range(3)]
        segments = [
            [" ".join(random.choice(topic, 3)) for _ in range(random.integers(1, 6))]
            for topic in topics
        ]
        boundaries = [len(segments[0]), len(segments[0]) + len(segments[1])]
        lines = [line for segment in segments for line in segment]
        rows.append(json.dumps({"lines": lines, "boundaries": boundaries}))
    (folder / "documents.jsonl").write_text("\n".join(rows), encoding="utf-8")
    numbers = ["one", "two", "three", "four", "five", "six", "seven"]
    text = " ".join(numbers[number * number % 7] for number in range(90))
    (folder / "numbers.txt").write_text(text, encoding="utf-8")


def train(
    settings: dict[str, Any], mode: str, folder: Path, group: ProcessGroup
) -> tuple[Experiment, Path | None]:
    """Train once; rank 0 writes the run. Returns the settings and the run folder."""
    size, accumulation = BATCHES[mode]
    os.environ["WORLD_SIZE"] = str(group.size)  # as torchrun does
    training = {
        **settings["training"],
        "batch_size": size,
        "gradient_accumulation_steps": accumulation,
        "shard": mode == "fsdp",
    }
    settings = {"tracking": {"track_every": 0}, **settings, "training": training}
    experiment = tasks.get(settings["task"]).Settings.model_validate_json(json.dumps(settings))
    task = create_task(experiment, folder.parents[1])
    run = create_run(task, folder) if group.is_first else None
    fit(task, run, group=group)
    return experiment, None if run is None else run.path


def train_and_resume(
    settings: dict[str, Any], mode: str, folder: Path, group: ProcessGroup
) -> None:
    """Train, then resume from the last checkpoint but one, as after a kill."""
    training = {**settings["training"], "checkpoint_every": 2, "keep_checkpoints": 3}
    experiment, path = train({**settings, "training": training}, mode, folder, group)
    run = None
    if path is not None:
        with Run.open(path) as reader:
            newest = reader.checkpoints()[-1].path
        for file in newest.parent.glob(f"{newest.stem}.*"):
            file.unlink()
        run = Run.reopen(path)
    fit(create_task(experiment, folder.parents[1]), run, group=group)


def train_all(folder: Path, rank: int) -> None:
    """Train every case in every mode. The two processes share the modes of a single process."""
    pair = ProcessGroup(rank=rank, size=PROCESSES, local_rank=rank)
    cases = {case.name: case.settings(folder) for case in TABLE} | OTHERS
    for name, settings in cases.items():
        for mode in DISTRIBUTED_MODES:
            train(settings, mode, folder / name / mode, pair)
        single_mode = "full" if rank else "accumulation"
        train(settings, single_mode, folder / name / single_mode, ProcessGroup())
    for mode in DISTRIBUTED_MODES:
        train_and_resume(RESUMED.settings(folder), mode, folder / "resumed" / mode, pair)


def main() -> None:
    """Fork, join a process group, train all cases."""
    import torch
    from torch import distributed

    folder = Path(sys.argv[1])
    write_data(folder)
    torch.set_num_threads(1)
    child_pid = os.fork()
    rank = int(child_pid == 0)
    try:
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=PROCESSES,
            timeout=timedelta(seconds=60),
        )
        train_all(folder, rank)
        distributed.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    if rank:
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child_pid, 0)[1]))


if __name__ == "__main__":
    main()

"""Cost of capturing attention during training.

    python benchmarks/tracking.py [--json] [--quick | --snapshot]

`--snapshot` takes a minute: for a GPT of 10.7 million parameters (6 layers, 6 heads, width 384),
median seconds of a snapshot divided by those of 50 training steps of 16 windows (loss, gradients,
clipping, AdamW). Steps and snapshots alternate. The figure is the mean of four snapshots without
maps and one with maps, as in training.

Without it, three trainings of one 4-layer GPT on the help texts of CPython, with the same seeds:
without snapshots; with a snapshot every 50 steps, all measures and maps, through the engine and
into a run folder; and with dense weights and their entropy at every step. They alternate step by
step in one process, so that all have the same noise; the figure is the median over blocks of 50
steps, each with one snapshot. The first steps, which import and compile, do not count. The losses
with and without snapshots must be equal bit for bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from torch.nn import functional

import neural
from neural.capture.tracker import AttentionTracker
from neural.core.experiment import Experiment
from neural.nn.attention.self import Self
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.runs.run import Run
from neural.tasks.task import Task
from neural.training.engine import fit

TEXT = "\n".join(text for _, text in sorted(topics.items()))
CHARACTERS = sorted(set(TEXT))
GOALS = {"a snapshot every 50 steps / none": 1.01, "a snapshot / 50 steps": 0.01}
PROGRAM = """
network GPT {{
  input: ({length},)
  layers:
    Embedding(input_dim={characters}, output_dim={width})
    TransformerDecoder(num_heads={heads}, d_model={width}, dropout_rate=0.1, activation="gelu")
      * {layers}
    Dense({characters}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


class NextCharacter(Task):
    """Predict the next character of a text."""

    def __init__(self, sizes: argparse.Namespace, *, every: int):
        tracking = {"track_every": every, "maps_every": 5}
        training = {"steps": sizes.steps, "batch_size": sizes.batch, "validate_every": sizes.steps}
        self.experiment = Experiment.model_validate(
            {"task": "next_character", "training": training, "tracking": tracking}
        )
        self.sizes = sizes
        ids = {character: number for number, character in enumerate(CHARACTERS)}
        self.text = torch.tensor([ids[character] for character in TEXT])

    def build(self):
        """The network of the program."""
        return neural.parse(PROGRAM.format(**vars(self.sizes), characters=len(CHARACTERS))).build()

    @property
    def batches_per_epoch(self):
        """Batches in the text."""
        return len(self.text) // self.sizes.length // self.sizes.batch

    def batch(self, index):
        """Windows at random positions."""
        generator = torch.Generator().manual_seed(index)
        start = torch.randint(
            0, len(self.text) - self.sizes.length, (self.sizes.batch, 1), generator=generator
        )
        return {"x": self.text[start + torch.arange(self.sizes.length + 1)]}

    def loss(self, model, batch):
        """Cross-entropy of the next character."""
        return model.loss(model.logits(batch["x"][:, :-1]), batch["x"][:, 1:]), {}

    def evaluate(self, model):
        """No validation."""
        return {}

    def probe_batch(self):
        """The first windows of a batch that is not trained on."""
        return {"x": self.batch(10**9)["x"][: self.experiment.tracking.probe_size, :-1]}

    def forward(self, model, batch):
        """One forward pass."""
        return model.logits(batch["x"])

    def token_ids(self, batch):
        """Characters are tokens."""
        return batch["x"]

    @classmethod
    def example(cls, folder, catalogue):
        """Not used here."""
        raise NotImplementedError


class DenseSelf(Self):
    """Self-attention that computes dense weights and stores them."""

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        """softmax(q·kᵀ) v in three steps."""
        weights = self.weights(q, k, mask)
        self.__dict__["last_weights"] = weights  # the dataclass is frozen
        return functional.dropout(weights, dropout) @ v


class DenseNextCharacter(NextCharacter):
    """The same task with the entropy of every head at every step."""

    entropies: list[np.ndarray]

    def build(self):
        """The network with other attention mechanisms."""
        model, self.entropies = super().build(), []
        for module in model.modules():
            if isinstance(module, MultiHeadAttentionModule):
                module.mechanism = DenseSelf()
        return model

    def loss(self, model, batch):
        """The loss; stores the entropies."""
        loss = super().loss(model, batch)
        with torch.no_grad():
            weights = [
                module.mechanism.last_weights
                for module in model.modules()
                if isinstance(module, MultiHeadAttentionModule)
            ]
            entropies = [-torch.xlogy(w, w).sum(-1).mean((0, 2)) for w in weights]
            self.entropies.append(torch.stack(entropies).numpy())
        return loss


class StepTurns:
    """Lets several trainings, one per thread, alternate step by step, and times every step."""

    def __init__(self, names):
        self.names, self.turn, self.seconds = list(names), 0, {name: [] for name in names}
        self.losses, self.start_time = {name: [] for name in names}, 0.0
        self.changed = threading.Condition()

    def wait(self, name):
        """Wait for the turn of a training."""
        with self.changed:
            self.changed.wait_for(lambda: self.names[self.turn % len(self.names)] == name)
        self.start_time = time.perf_counter()

    def on_step(self, name, progress):
        """Record a step, and let the next training continue."""
        self.seconds[name].append(time.perf_counter() - self.start_time)
        self.losses[name].append(progress.loss)
        self.end_turn()
        if progress.step < progress.steps:
            self.wait(name)

    def end_turn(self):
        """Let the next training continue."""
        with self.changed:
            self.turn += 1
            self.changed.notify_all()


def measure(sizes) -> dict:
    """Seconds per step, and the ratios that have goals."""
    tasks = {
        "no snapshots": NextCharacter(sizes, every=0),
        f"a snapshot every {sizes.every} steps": NextCharacter(sizes, every=sizes.every),
        "dense weights at every step": DenseNextCharacter(sizes, every=0),
    }
    turns, errors = StepTurns(tasks), []

    def train(name, folder):
        try:
            turns.wait(name)
            run = Run.create(folder, "benchmark", settings={}, program=None)
            fit(tasks[name], run, on_step=lambda progress: turns.on_step(name, progress))
        except BaseException as error:
            errors.append(error)
            turns.end_turn()
            raise

    with tempfile.TemporaryDirectory() as folder:
        threads = []
        for number, name in enumerate(tasks):
            root = Path(folder) / str(number)
            root.mkdir()
            threads.append(threading.Thread(target=train, args=(name, root), daemon=True))
            threads[-1].start()
        for thread in threads:
            while thread.is_alive() and not errors:
                thread.join(0.2)
    if errors:
        sys.exit(f"benchmark failed: {errors[0]!r}")
    without, tracked, dense = (np.array(seconds) for seconds in turns.seconds.values())
    # the first step compiles and the last one saves: full blocks between them, with a snapshot each
    half, steps = sizes.every // 2, _snapshot_steps(sizes)
    blocks = [slice(step - half, step + sizes.every - half) for step in steps]
    ratio = statistics.median(tracked[block].sum() / without[block].sum() for block in blocks)
    snapshot = statistics.median(tracked[step - 1] - without[step - 1] for step in steps)
    first, second, _ = turns.losses.values()
    return {
        "sizes": vars(sizes),
        "threads": torch.get_num_threads(),
        "seconds per step": {
            name: float(np.median(seconds)) for name, seconds in turns.seconds.items()
        },
        "ratios": {
            f"a snapshot every {sizes.every} steps / none": ratio,
            "dense weights at every step / none": float(np.median(dense / without)),
            "one snapshot / one step": float(snapshot / np.median(without)),
        },
        "losses are equal bit for bit": first == second,
    }


def measure_snapshot(sizes, rounds: int = 5) -> dict:
    """Seconds of a training step and of a snapshot, without the engine; medians."""
    torch.manual_seed(0)
    task = NextCharacter(sizes, every=sizes.every)
    model = task.build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seconds = {"step": [], "snapshot": [], "snapshot with maps": []}

    def train_step(index):
        loss, _ = task.loss(model, task.batch(index))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder), "benchmark", settings={}, program=None)
        tracker = AttentionTracker(task, run, task.experiment.tracking)

        def capture(index, *, with_maps):
            step = sizes.every * (5 * index + 5 * with_maps + 1 - with_maps)
            tracker.capture_snapshot(model, step)

        for index in range(rounds + 1):
            for name, action in (
                ("step", train_step),
                ("snapshot", partial(capture, with_maps=False)),
                ("step", train_step),
                ("snapshot with maps", partial(capture, with_maps=True)),
            ):
                start = time.perf_counter()
                action(index)
                if index:  # the first round loads libraries and writes metadata
                    seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    mean_snapshot = (4 * medians["snapshot"] + medians["snapshot with maps"]) / 5
    return {
        "sizes": vars(sizes),
        "threads": torch.get_num_threads(),
        "parameters": sum(param.numel() for param in model.parameters()),
        "seconds": medians,
        "ratios": {
            "a snapshot / 50 steps": mean_snapshot / (50 * medians["step"]),
            "one snapshot / one step": mean_snapshot / medians["step"],
        },
    }


def _snapshot_steps(sizes):
    """The steps with a snapshot, without the last one."""
    return range(sizes.every, sizes.steps - sizes.every // 2, sizes.every)


def print_snapshot(results: dict, *, as_json: bool) -> None:
    """Print the results of `measure_snapshot`."""
    if as_json:
        print(json.dumps(results | {"goals": GOALS}, indent=2))
        return
    print(f"{results['parameters']:,} parameters, {results['threads']} threads\n")
    for name, value in results["seconds"].items():
        print(f"  {name:48} {value * 1000:9.1f} ms")
    for name, value in results["ratios"].items():
        print(f"  {name:48} {value:9.4f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--quick", action="store_true", help="a small network, a snapshot every 5 steps"
    )
    parser.add_argument(
        "--snapshot", action="store_true", help="a snapshot / 50 steps of 10.7 million parameters"
    )
    options = parser.parse_args()
    full = {"layers": 4, "heads": 4, "steps": 280, "every": 50, "length": 256, "width": 128}
    quick = {"layers": 4, "heads": 4, "steps": 23, "every": 5, "length": 64, "width": 32}
    if options.snapshot:
        sizes = argparse.Namespace(**full | {"layers": 6, "heads": 6, "width": 384}, batch=16)
        print_snapshot(measure_snapshot(sizes), as_json=options.json)
        return
    sizes = argparse.Namespace(**quick, batch=4) if options.quick else None
    results = measure(sizes or argparse.Namespace(**full, batch=16))
    if options.json:
        print(json.dumps(results | {"goals": GOALS}, indent=2))
    else:
        print(f"4 layers, {results['sizes']}; {results['threads']} threads\n")
        for name, value in results["seconds per step"].items():
            print(f"  {name:48} {value * 1000:9.1f} ms per step")
        print()
        for name, value in results["ratios"].items():
            print(
                f"  {name:48} {value:9.3f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else "")
            )
        print(f"\n  losses are equal bit for bit: {results['losses are equal bit for bit']}")
    if not results["losses are equal bit for bit"]:
        sys.exit("snapshots changed the training")


if __name__ == "__main__":
    main()

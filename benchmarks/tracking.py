"""What it costs to watch the attention while a network learns.

    python benchmarks/tracking.py [--json] [--quick]

Three trainings of one 4-layer GPT on the text that CPython carries, with the same seeds: nobody looks; a look every 50
steps, all measures and maps, through the engine and into a run folder; and the way that comes to mind first, weights
written out and their entropy taken on every step. They take turns step by step in one process, so that all meet the
same noise; the figure is the median over blocks of 50 steps, each with one look. The first steps, with what is loaded
and compiled there, do not count. Nobody looking and a look every 50 steps must give the same losses to the last bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from torch.nn import functional

import neural
from neural.modules.attention.self import Self
from neural.modules.heads import Heads
from neural.tasks.experiment import Experiment
from neural.tasks.task import Task
from neural.tracking.run import Run
from neural.training.engine import fit

TEXT = "\n".join(text for _, text in sorted(topics.items()))
LETTERS = sorted(set(TEXT))
GOALS = {"a look every 50 steps / nobody looks": 1.02}
PROGRAM = """
network GPT {{
  input: ({length},)
  layers:
    Embedding(input_dim={letters}, output_dim={width})
    TransformerDecoder(num_heads=4, d_model={width}, dropout_rate=0.1, activation="gelu") * 4
    Dense({letters}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


class Letters(Task):
    """The next letter of a text."""

    def __init__(self, sizes: argparse.Namespace, *, every: int):
        tracking = {"track_every": every, "maps_every": 5}
        training = {"steps": sizes.steps, "batch_size": sizes.batch, "validate_every": sizes.steps}
        self.experiment = Experiment(task="letters", training=training, tracking=tracking)
        self.sizes = sizes
        numbers = {letter: number for number, letter in enumerate(LETTERS)}
        self.text = torch.tensor([numbers[letter] for letter in TEXT])

    def build(self):
        """As a program."""
        sizes = {"length": self.sizes.length, "width": self.sizes.width, "letters": len(LETTERS)}
        return neural.parse(PROGRAM.format(**sizes)).build()

    @property
    def epoch(self):
        """Batches in the text."""
        return len(self.text) // self.sizes.length // self.sizes.batch

    def batch(self, index):
        """Pieces from anywhere."""
        generator = torch.Generator().manual_seed(index)
        start = torch.randint(0, len(self.text) - self.sizes.length, (self.sizes.batch, 1), generator=generator)
        return {"x": self.text[start + torch.arange(self.sizes.length + 1)]}

    def loss(self, model, batch):
        """Cross-entropy."""
        return model.loss(model.scores(batch["x"][:, :-1]), batch["x"][:, 1:]), {}

    def evaluate(self, model):
        """No validation."""
        return {}

    def probe(self):
        """The first of a batch that is not trained on."""
        return {"x": self.batch(10**9)["x"][: self.experiment.tracking.probe_size, :-1]}

    def look(self, model, batch):
        """One forward."""
        return model.scores(batch["x"])

    def tokens(self, batch):
        """Letters are tokens."""
        return batch["x"]

    @classmethod
    def tiny(cls, folder):
        """Not asked for here."""
        raise NotImplementedError


class Kept(Self):
    """Attention whose weights are written out and kept."""

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        """softmax(q·kᵀ) v in three steps."""
        weights = self.weights(q, k, mask)
        self.__dict__["seen"] = weights
        return functional.dropout(weights, dropout) @ v


class WrittenOut(Letters):
    """The same, with the entropy of every head on every step."""

    found: list[np.ndarray]

    def build(self):
        """The mechanism of every attention is exchanged."""
        model, self.found = super().build(), []
        for module in model.modules():
            if isinstance(module, Heads):
                module.mechanism = Kept()
        return model

    def loss(self, model, batch):
        """And what was kept."""
        found = super().loss(model, batch)
        with torch.no_grad():
            kept = [one.mechanism.seen for one in model.modules() if isinstance(one, Heads)]
            self.found.append(torch.stack([-torch.xlogy(w, w).sum(-1).mean((0, 2)) for w in kept]).numpy())
        return found


class Turns:
    """Lets several trainings go on in turn, a step each, and takes the time of every step."""

    def __init__(self, names):
        self.names, self.turn, self.seconds = list(names), 0, {name: [] for name in names}
        self.losses, self.started = {name: [] for name in names}, 0.0
        self.changed = threading.Condition()

    def wait(self, name):
        """Until it is this one's turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.names[self.turn % len(self.names)] == name)
        self.started = time.perf_counter()

    def tell(self, name, progress):
        """A step is done: the next one's turn."""
        self.seconds[name].append(time.perf_counter() - self.started)
        self.losses[name].append(progress.loss)
        self.end(name)
        if progress.step < progress.steps:
            self.wait(name)

    def end(self, name):
        """Hand over."""
        with self.changed:
            self.turn += 1
            self.changed.notify_all()


def measure(sizes) -> dict:
    """Seconds per step and the ratios that goals are set for."""
    tasks = {
        "nobody looks": Letters(sizes, every=0),
        f"a look every {sizes.every} steps": Letters(sizes, every=sizes.every),
        "written out on every step": WrittenOut(sizes, every=0),
    }
    turns, wrong = Turns(tasks), []

    def train(name, folder):
        try:
            turns.wait(name)
            run = Run.create(folder, "benchmark", settings={}, program=None)
            fit(tasks[name], run, tell=lambda progress: turns.tell(name, progress))
        except BaseException as problem:
            wrong.append(problem)
            turns.end(name)
            raise

    with tempfile.TemporaryDirectory() as folder:
        threads = []
        for number, name in enumerate(tasks):
            place = Path(folder) / str(number)
            place.mkdir()
            threads.append(threading.Thread(target=train, args=(name, place), daemon=True))
            threads[-1].start()
        for thread in threads:
            while thread.is_alive() and not wrong:
                thread.join(0.2)
    if wrong:
        sys.exit(f"benchmark failed: {wrong[0]!r}")
    without, looked, written = (np.array(one) for one in turns.seconds.values())
    # the last step also saves a checkpoint, the first one loads and compiles: whole blocks between them, a look in each
    blocks = [slice(at - sizes.every // 2, at + sizes.every - sizes.every // 2) for at in _looks(sizes)]
    ratio = statistics.median(looked[one].sum() / without[one].sum() for one in blocks)
    plain = np.median(without)
    look = statistics.median(looked[at - 1] - without[at - 1] for at in _looks(sizes))
    first, second, _ = turns.losses.values()
    return {
        "sizes": vars(sizes), "threads": torch.get_num_threads(),
        "seconds per step": {name: float(np.median(one)) for name, one in turns.seconds.items()},
        "ratios": {
            f"a look every {sizes.every} steps / nobody looks": ratio,
            "written out on every step / nobody looks": float(np.median(written / without)),
            "one look / one step": float(look / plain),
        },
        "losses are the same to the last bit": first == second,
    }  # fmt: skip


def _looks(sizes):
    """The steps at which a look falls, without the last one."""
    return range(sizes.every, sizes.steps - sizes.every // 2, sizes.every)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a small network, a look every 5 steps")
    options = parser.parse_args()
    full = {"steps": 280, "every": 50, "length": 256, "width": 128, "batch": 16}
    quick = {"steps": 23, "every": 5, "length": 64, "width": 32, "batch": 4}
    found = measure(argparse.Namespace(**(quick if options.quick else full)))
    if options.json:
        print(json.dumps(found | {"goals": GOALS}, indent=2))
    else:
        print(f"4 layers, {found['sizes']}; {found['threads']} threads\n")
        for name, value in found["seconds per step"].items():
            print(f"  {name:48} {value * 1000:9.1f} ms per step")
        print()
        for name, value in found["ratios"].items():
            print(f"  {name:48} {value:9.3f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))
        print(f"\n  losses are the same to the last bit: {found['losses are the same to the last bit']}")
    if not found["losses are the same to the last bit"]:
        sys.exit("looking changed what was learned")


if __name__ == "__main__":
    main()

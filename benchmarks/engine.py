"""A step of the engine against the bare torch loop of the same model, the same batches, the same optimizer.

    python benchmarks/engine.py [--quick] [--json]

Both take turns in one process. A step of the engine is all that happens between two calls of `tell`: the batch, the
gradients, the guard against NaN, the rows in the run folder, the heartbeat. Validation and checkpoints are left out on
both sides (they come after the last step). The figure is the mean over all steps of a turn, the best turn of each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from neural.experiments import made, new_run
from neural.tasks.supervised import SupervisedSettings
from neural.training.engine import fit

PROGRAM = """network Characters {
  input: (256,)
  layers:
    Embedding(input_dim=96, output_dim=128)
    TransformerDecoder(num_heads=4, d_model=128, dff=512, positional="rotary", final_norm=true) * 4
    Output(96, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.001)
}
"""


def task_in(folder: Path, steps: int):
    """Next characters of random text: what is learned does not matter, only how long it takes."""
    random = np.random.default_rng(0)
    text = random.integers(0, 96, size=(256, 257))
    np.savez(folder / "text.npz", x=text[:, :-1], y=text[:, 1:])
    settings = {
        "network": PROGRAM, "data": str(folder / "text.npz"), "tracking": {"track_every": 0},
        "training": {"steps": steps, "batch_size": 8, "validate_every": steps, "clip_norm": 1.0},
    }  # fmt: skip
    return made(SupervisedSettings.model_validate(settings), folder)


def by_the_engine(folder: Path, steps: int) -> float:
    """Seconds per step."""
    task, ends = task_in(folder, steps), []
    fit(task, new_run(task, folder / "runs"), tell=lambda progress: ends.append(time.perf_counter()))
    return (ends[-2] - ends[0]) / (len(ends) - 2)   # after the last step come validation and checkpoint


def bare(folder: Path, steps: int) -> float:
    """Seconds per step."""
    task, ends = task_in(folder, steps), []
    torch.manual_seed(0)
    model = task.build()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for step in range(steps):
        loss, _ = task.loss(model, task.batch(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        ends.append(time.perf_counter())
    return (ends[-2] - ends[0]) / (len(ends) - 2)


def main() -> None:
    """Turns, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two short turns")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    turns, steps = (2, 10) if options.quick else (8, 40)
    found: dict[str, list[float]] = {"engine": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            for name, way in (("engine", by_the_engine), ("bare", bare))[:: 1 if turn % 2 else -1]:
                found[name].append(way(Path(folder), steps))
    best = {name: min(values) for name, values in found.items()}
    ratio = best["engine"] / best["bare"]
    if options.json:
        print(json.dumps({"seconds per step": found, "ratio": ratio, "goal": 1.03}, indent=2))
        return
    print(f"4 layers, width 128, n = 256, batch 8; {torch.get_num_threads()} threads; {turns} turns of {steps} steps")
    for name, seconds in best.items():
        print(f"  {name:8} {1000 * seconds:8.1f} ms per step")
    print(f"  engine / bare {ratio:.3f}   goal 1.03")


if __name__ == "__main__":
    main()

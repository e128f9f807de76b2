"""A step of the engine against a bare torch loop with the same model, batches and optimizer.

    python benchmarks/engine.py [--quick] [--json]

Both alternate in one process. A step of the engine is everything between two calls of `on_step`:
the batch, the gradients, the check for NaN, the rows in the run folder, the heartbeat. Validation
and checkpoints are excluded on both sides (they come after the last step). The figure is the mean
over all steps of a round, of the best round of each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from neural.tasks.supervised.task import SupervisedSettings
from neural.training.engine import fit
from neural.training.load_task import create_task
from neural.workflows.train import create_run

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


def create_random_task(folder: Path, steps: int):
    """Next-character prediction on random text: only the time matters."""
    random = np.random.default_rng(0)
    text = random.integers(0, 96, size=(256, 257))
    np.savez(folder / "text.npz", x=text[:, :-1], y=text[:, 1:])
    settings = {
        "network": PROGRAM,
        "data": str(folder / "text.npz"),
        "tracking": {"track_every": 0},
        "training": {"steps": steps, "batch_size": 8, "validate_every": steps, "clip_norm": 1.0},
    }
    return create_task(SupervisedSettings.model_validate(settings), folder)


def time_engine(folder: Path, steps: int) -> float:
    """Seconds per step of the engine."""
    task, ends = create_random_task(folder, steps), []
    fit(
        task,
        create_run(task, folder / "runs"),
        on_step=lambda progress: ends.append(time.perf_counter()),
    )
    # after the last step come validation and checkpoint
    return (ends[-2] - ends[0]) / (len(ends) - 2)


def time_bare_loop(folder: Path, steps: int) -> float:
    """Seconds per step of a loop without the engine."""
    task, ends = create_random_task(folder, steps), []
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
    """Run all rounds and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds, steps = (2, 10) if options.quick else (8, 40)
    seconds: dict[str, list[float]] = {"engine": [], "bare": []}
    functions = {"engine": time_engine, "bare": time_bare_loop}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name in list(functions)[:: 1 if number % 2 else -1]:
                seconds[name].append(functions[name](Path(folder), steps))
    best = {name: min(values) for name, values in seconds.items()}
    ratio = best["engine"] / best["bare"]
    if options.json:
        print(json.dumps({"seconds per step": seconds, "ratio": ratio, "goal": 1.03}, indent=2))
        return
    print(
        f"4 layers, width 128, n = 256, batch 8; {torch.get_num_threads()} threads; "
        f"{rounds} rounds of {steps} steps"
    )
    for name, value in best.items():
        print(f"  {name:8} {1000 * value:8.1f} ms per step")
    print(f"  engine / bare {ratio:.3f}   goal 1.03")


if __name__ == "__main__":
    main()

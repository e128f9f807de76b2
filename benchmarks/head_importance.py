"""Cost of the importance of all heads, in forward passes of the model.

    python benchmarks/head_importance.py [--json] [--quick]

The model is nanoGPT's character-level one: 6 layers × 6 heads, 10 million parameters, random
weights; 64 windows of 256 random characters. In turn and in one process are timed: forward passes
over all windows without gradients, with several batch sizes; and the importance of all heads with
its gradient estimate, without pairs. The figure is the median time of importance / (heads + 1) / the
median time of a forward pass, with the batch size that is fastest. Beside it: the same with complete
passes (`use_blocks=False`), about 1. Memory is the peak beyond the model and the windows, in fresh
processes. Run it on a machine that does nothing else: threads that wait for each other distort the
ratio.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from measures import read_peak_memory
from torch.nn.functional import cross_entropy

import neural
from neural.capture.head_importance import measure_head_importance
from neural.tasks.language_model.presets import write_program

VOCABULARY, WINDOWS, LENGTH = 65, 64, 256
ROUNDS = 3
FORWARD_BATCHES = (4, 8, 16)
"""Batch sizes of the plain forward pass that are tried."""
GOALS = {"importance / ((heads + 1) × forward)": 0.6}


def build_model() -> torch.nn.Module:
    """The preset `full` in nanoGPT's architecture, with random weights."""
    torch.manual_seed(0)
    model = neural.parse(write_program("full", "classic", VOCABULARY, LENGTH)).build().eval()
    with torch.no_grad():
        for param in model.parameters():  # trained weights are larger than initial ones
            param.mul_(2.0)
    return model


def draw_windows(count: int) -> dict[str, torch.Tensor]:
    """Random characters and the next ones."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(VOCABULARY, (count, LENGTH + 1), generator=generator)
    return {"x": ids[:, :-1].contiguous(), "y": ids[:, 1:].contiguous()}


def compute_losses(model: Any, batch: Any) -> torch.Tensor:
    """Cross-entropy of every character."""
    logits, targets = model.logits(batch["x"]), batch["y"]
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def run_forward(model: Any, windows: Any, batch_size: int) -> float:
    """Seconds of a forward pass over all windows."""
    start = time.perf_counter()
    with torch.no_grad():
        for first in range(0, len(windows["x"]), batch_size):
            rows = slice(first, first + batch_size)
            compute_losses(model, {name: ids[rows] for name, ids in windows.items()})
    return time.perf_counter() - start


def run_importance(model: Any, windows: Any, use_blocks: bool = True) -> float:
    """Seconds of the importance of all heads."""
    start = time.perf_counter()
    measure_head_importance(
        model, compute_losses, [windows], with_pairs=False, use_blocks=use_blocks
    )
    return time.perf_counter() - start


def measure(quick: bool) -> dict[str, Any]:
    """Medians over rounds, and the peak memory."""
    model, windows = build_model(), draw_windows(8 if quick else WINDOWS)
    heads = 36
    for batch_size in FORWARD_BATCHES:
        run_forward(model, windows, batch_size)
    forward: dict[int, list[float]] = {size: [] for size in FORWARD_BATCHES}
    importance = []
    for _ in range(1 if quick else ROUNDS):
        for size in FORWARD_BATCHES:
            forward[size].append(run_forward(model, windows, size))
        importance.append(run_importance(model, windows))
        for size in FORWARD_BATCHES:
            forward[size].append(run_forward(model, windows, size))
    complete = run_importance(model, windows, use_blocks=False)
    medians = {size: statistics.median(seconds) for size, seconds in forward.items()}
    unit = (heads + 1) * min(medians.values())
    memory = [measure_memory(len(windows["x"])) for _ in range(1 if quick else 2)]
    return {
        "parameters": sum(param.numel() for param in model.parameters()),
        "threads": torch.get_num_threads(),
        "forward, seconds by batch size": forward,
        "importance, seconds": importance,
        "complete passes, seconds": complete,
        "peak memory, MB": statistics.median(memory),
        "complete passes / ((heads + 1) × forward)": complete / unit,
        "importance / ((heads + 1) × forward)": statistics.median(importance) / unit,
        "goals": GOALS,
    }


def measure_memory(count: int) -> float:
    """Megabytes in a fresh process."""
    command = [sys.executable, __file__, "--memory", str(count)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="8 windows, one round")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        model, windows = build_model(), draw_windows(options.memory)
        run_forward(model, draw_windows(2), 2)
        before = read_peak_memory(reset=True)
        run_importance(model, windows)
        print(read_peak_memory() - before)
        return
    results = measure(options.quick)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{results['parameters']:,} parameters, {results['threads']} threads")
    for size, seconds in results["forward, seconds by batch size"].items():
        print(f"  forward, {size:2} windows at once   {statistics.median(seconds):8.2f} s")
    print(
        f"  importance                     {statistics.median(results['importance, seconds']):8.2f} s"
    )
    print(f"  importance by complete passes  {results['complete passes, seconds']:8.2f} s")
    print(f"  peak memory {results['peak memory, MB']:.0f} MB")
    for name, value in results.items():
        if "/" in name:
            print(f"  {name:44} {value:.3f}" + (f"   goal {GOALS[name]}" if name in GOALS else ""))


if __name__ == "__main__":
    main()

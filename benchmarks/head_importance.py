"""Cost of the importance of all heads, in forward passes of the model.

    python benchmarks/head_importance.py [--json] [--quick]

The model is nanoGPT's character-level one: 6 layers × 6 heads, 10 million parameters, random
weights; 64 windows of 256 random characters. One round times, in turn and in this process: forward passes
over all windows without gradients (the fastest of several batch sizes counts, so that the unit is
not made slow); the importance of all heads with its gradient estimate, without pairs; and the same
with complete passes instead of repeated parts (`use_blocks=False`). The figure is the median over
rounds of importance / (heads + 1) / forward pass, in CPU time of the process; complete passes would
be about 1. Memory is the peak beyond the model and the windows, in fresh processes.
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


def read_clock() -> float:
    """CPU seconds of this process: less disturbed by other programs than wall time."""
    return time.process_time()


def run_forward(model: Any, windows: Any, batch_size: int) -> float:
    """Seconds of a forward pass over all windows."""
    start = read_clock()
    with torch.no_grad():
        for first in range(0, len(windows["x"]), batch_size):
            rows = slice(first, first + batch_size)
            compute_losses(model, {name: ids[rows] for name, ids in windows.items()})
    return read_clock() - start


def run_importance(model: Any, windows: Any, use_blocks: bool = True) -> float:
    """Seconds of the importance of all heads."""
    start = read_clock()
    measure_head_importance(
        model, compute_losses, [windows], with_pairs=False, use_blocks=use_blocks
    )
    return read_clock() - start


def measure(quick: bool) -> dict[str, Any]:
    """Medians over rounds, and the peak memory."""
    model, windows = build_model(), draw_windows(8 if quick else WINDOWS)
    heads = 36
    for batch_size in FORWARD_BATCHES:
        run_forward(model, windows, batch_size)
    rounds = []
    for index in range(1 if quick else 3):
        forward = {size: run_forward(model, windows, size) for size in FORWARD_BATCHES}
        seconds = {"importance": run_importance(model, windows)}
        forward = {size: min(forward[size], run_forward(model, windows, size)) for size in forward}
        if index == 0:
            seconds["complete passes"] = run_importance(model, windows, use_blocks=False)
        rounds.append({"forward": min(forward.values()), **seconds, "by batch size": forward})
    unit = [(heads + 1) * figures["forward"] for figures in rounds]
    ratios = [figures["importance"] / size for figures, size in zip(rounds, unit, strict=True)]
    memory = [measure_memory(len(windows["x"])) for _ in range(1 if quick else 2)]
    return {
        "rounds": rounds,
        "parameters": sum(param.numel() for param in model.parameters()),
        "threads": torch.get_num_threads(),
        "peak memory, MB": statistics.median(memory),
        "complete passes / ((heads + 1) × forward)": rounds[0]["complete passes"] / unit[0],
        "importance / ((heads + 1) × forward)": statistics.median(ratios),
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
    for figures in results["rounds"]:
        times = ", ".join(
            f"{name} {value:.2f} s" for name, value in figures.items() if name != "by batch size"
        )
        print(f"  {times}")
    print(f"  peak memory {results['peak memory, MB']:.0f} MB")
    for name, value in results.items():
        if "/" in name:
            print(f"  {name:44} {value:.3f}" + (f"   goal {GOALS[name]}" if name in GOALS else ""))


if __name__ == "__main__":
    main()

"""Cost of capturing the attention of a GPT-2-sized model, against computing all dense weights.

    python benchmarks/inspection.py [--json] [--quick]

Capture: GPT-2 small's shape (12 layers × 12 heads, width 64) with random weights, one text of n
positions. Memory: peak of a fresh process in one forward pass with capture and measures, minus the
same pass without, medians over processes; beside it the memory of the dense weights of all heads.
Time: both passes alternate in one process; the figure is the median ratio. Accuracy: entropies of
sampled rows against a softmax in float64.

A page of all heads: its size and the time until it is drawn, against BertViz; see pages.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from measures import FIVE_MEASURES, read_peak_memory
from pages import GOALS as PAGE_GOALS
from pages import measure_pages, print_pages

from neural.capture.statistics import measure_rows
from neural.capture.watch import watch

LAYERS, HEADS, WIDTH, VOCABULARY = 12, 12, 64, 5_000
SAMPLED_ROWS = 16
"""Rows of every head whose entropy is checked."""
MEMORY_PROCESSES, TIME_ROUNDS = 3, 5
"""Fresh processes whose memory is measured, and alternating passes whose time is."""
GOALS = {
    "watch, share of all weights": 0.04,
    "watch, largest error of an entropy": 1e-4,
    "watched pass / plain pass, seconds": 1.3,
}


def build_gpt2(n: int) -> torch.nn.Module:
    """GPT-2 small with a small vocabulary, without its output layer, which needs most memory."""
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=n,
        n_embd=HEADS * WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        use_cache=False,
        attn_implementation="sdpa",
    )
    return transformers.GPT2Model._from_config(config).eval()


def random_ids(n: int) -> torch.Tensor:
    """Random token ids, (1, n)."""
    return torch.randint(0, VOCABULARY, (1, n), generator=torch.Generator().manual_seed(1))


def plain_pass(model: torch.nn.Module, ids: torch.Tensor) -> None:
    """A forward pass without capture."""
    with torch.no_grad():
        model(ids)


def watched_pass(model: torch.nn.Module, ids: torch.Tensor) -> Any:
    """A forward pass with capture and five measures of every head."""
    capture = watch(model, ids, measures=FIVE_MEASURES)
    capture.measure_arrays()
    return capture


PASSES = {"plain": plain_pass, "watched": watched_pass}


def measure_pass(name: str, n: int) -> dict[str, float]:
    """Peak memory of one pass in this process; with capture also the largest error."""
    model, ids = build_gpt2(n), random_ids(n)
    watched_pass(model, ids[:, :64])  # compiles; for both passes, so that they start alike
    before = read_peak_memory(reset=True)
    capture = PASSES[name](model, ids)
    result = {"megabytes": read_peak_memory() - before}
    if capture is not None:
        result |= {"error": largest_error(capture, n), "layers": len(capture)}
    return result


def measure_seconds(n: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each pass in every round; the passes alternate in this process."""
    model, ids = build_gpt2(n), random_ids(n)
    watched_pass(model, ids[:, :64])
    seconds: dict[str, list[float]] = {name: [] for name in PASSES}
    for _ in range(rounds):
        for name, run_pass in PASSES.items():
            start = time.perf_counter()
            run_pass(model, ids)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def largest_error(capture: Any, n: int) -> float:
    """Largest error of the entropies of sampled rows, in nats, against a softmax in float64."""
    random = np.random.default_rng(0)
    rows = torch.tensor(np.sort(random.choice(n, min(SAMPLED_ROWS, n), replace=False)))
    largest = 0.0
    for call in capture:
        q, k = call.attention.q[:, :, rows].double(), call.attention.k.double()
        scores = q @ k.mT * WIDTH**-0.5
        weights = scores.masked_fill(torch.arange(n) > rows[:, None], -torch.inf).softmax(-1)
        exact = -torch.special.xlogy(weights, weights).sum(-1)
        entropy = measure_rows(["entropy"], call.attention)["entropy"][:, :, rows]
        largest = max(largest, float((entropy - exact).abs().max()))
    return largest


def measure_in_fresh_process(name: str, n: int) -> dict[str, float]:
    """`measure_pass` in a fresh process."""
    command = [sys.executable, __file__, "--only", name, "--n", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_capture(quick: bool) -> dict[str, Any]:
    """Megabytes, seconds and the share of the memory of all dense weights."""
    n = 1_024 if quick else 4_096
    # as many processes of the one as of the other, in turn
    processes = [
        {name: measure_in_fresh_process(name, n) for name in PASSES}
        for _ in range(1 if quick else MEMORY_PROCESSES)
    ]
    seconds = measure_seconds(n, 2 if quick else TIME_ROUNDS)
    passes = {
        name: {
            "megabytes": statistics.median(process[name]["megabytes"] for process in processes),
            "seconds": statistics.median(seconds[name]),
        }
        for name in PASSES
    }
    dense = LAYERS * HEADS * n * n * 4 / 2**20
    extra = passes["watched"]["megabytes"] - passes["plain"]["megabytes"]
    ratios = [
        watched / plain for plain, watched in zip(seconds["plain"], seconds["watched"], strict=True)
    ]
    return {
        "n": n,
        "passes": passes,
        "processes": processes,
        "all weights, MB": dense,
        "extra, MB": extra,
        "ratios": {
            "watch, share of all weights": extra / dense,
            "watch, largest error of an entropy": max(
                process["watched"]["error"] for process in processes
            ),
            "watched pass / plain pass, seconds": statistics.median(ratios),
        },
    }


def print_capture(results: dict[str, Any]) -> None:
    """Print the figures of the capture as a table."""
    threads = torch.get_num_threads()
    print(f"capture of {LAYERS} × {HEADS} heads, n = {results['n']:,}, {threads} threads")
    for name, figures in results["passes"].items():
        print(f"  {name:10} {figures['seconds']:8.1f} s  {figures['megabytes']:8.0f} MB at most")
    dense, extra = results["all weights, MB"], results["extra, MB"]
    print(f"  dense weights take {dense:,.0f} MB, the capture {extra:,.0f} MB")
    for name, value in results["ratios"].items():
        print(f"  {name:42} {value:9.2g}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


def main() -> None:
    """Print tables or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 1,024")
    parser.add_argument("--only", choices=PASSES, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--no-pages", action="store_true", help="the capture only")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure_pass(options.only, options.n)))
        return
    results = {
        "watching": measure_capture(options.quick),
        "pages": None if options.no_pages else measure_pages(quick=options.quick),
        "goals": GOALS | PAGE_GOALS,
    }
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print_capture(results["watching"])
        if results["pages"] is not None:
            print_pages(results["pages"])


if __name__ == "__main__":
    main()

"""Attention measures without the n×n matrix, against one fused forward pass and dense weights.

    python benchmarks/measures.py [--json] [--quick]

Times: all methods alternate in one process, in torch's default environment; the figure is the
median of the rounds. The slow ones, which compute dense weights, run in two rounds only. Memory:
peak of a fresh process beyond its inputs, after a small warm-up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention

from neural.capture.attention_call import AttentionCall
from neural.capture.measures import registry
from neural.capture.statistics import aggregate_rows, compare_layers, head_statistics
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask

B, H, D = 1, 8, 64
FIVE_MEASURES = ("entropy", "span", "first_key_mass", "largest_weight", "previous_token_mass")
TWO_MEASURES = ("js_between", "cosine_between")
GOALS = {
    "five statistics / fused": 0.4,
    "two layers, dense / ours": 8.0,
    "five statistics, MB": 100.0,
}


def fused(q, k, v):
    """One forward pass of torch's fused attention."""
    return scaled_dot_product_attention(q, k, v)


def five(q, k, v):
    """Entropy, span, first key, largest weight, previous token, in one pass."""
    return head_statistics(q, k, measures=FIVE_MEASURES)


def five_causal(q, k, v):
    """The same for causal attention."""
    return head_statistics(q, k, Mask(causal=True), measures=FIVE_MEASURES)


def fused_causal(q, k, v):
    """One causal forward pass."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def five_in_torch(q, k, v):
    """The same in pure torch: dense weights of chunks of rows."""
    with no_kernels():
        return five(q, k, v)


def compute_dense(names, *layers):
    """Measures by their definitions, from dense weights."""
    maps = [AttentionCall(q, k).compute_maps() for q, k in layers]
    return aggregate_rows({name: registry.get(name)().reference(*maps) for name in names})


def five_dense(q, k, v):
    """The five measures of one layer from dense weights."""
    return compute_dense(FIVE_MEASURES, (q, k))


def two_layers(q, k, v):
    """Jensen–Shannon divergence and cosine similarity of two layers, row by row."""
    return compare_layers(q, k, k, q, measures=TWO_MEASURES)


def two_layers_dense(q, k, v):
    """The same from dense weights."""
    return compute_dense(TWO_MEASURES, (q, k), (k, q))


ONE_LAYER = (fused, five, fused_causal, five_causal, five_in_torch, five_dense)
TWO_LAYERS = (fused, two_layers, two_layers_dense)
SLOW_METHODS = (five_in_torch, five_dense, two_layers_dense)
METHODS = {method.__name__: method for method in (*ONE_LAYER, *TWO_LAYERS)}


def inputs(n: int) -> list[torch.Tensor]:
    """Queries, keys and values."""
    torch.manual_seed(0)
    return [torch.randn(B, H, n, D) for _ in range(3)]


def time_methods(methods, n: int, rounds: int) -> dict[str, float]:
    """Median seconds of each method; all alternate."""
    qkv, seconds = inputs(n), {method.__name__: [] for method in methods}
    for method in methods:
        method(*inputs(64))  # loads the native library
    for number in range(rounds):
        for method in methods:
            if number >= 2 and method in SLOW_METHODS:
                continue
            start = time.perf_counter()
            method(*qkv)
            seconds[method.__name__].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak(name: str, n: int) -> float:
    """Peak memory in MB beyond the inputs, in a fresh process."""
    command = [sys.executable, __file__, "--peak", name, "--n", str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_here(name: str, n: int) -> float:
    """Peak memory in MB beyond the inputs, in this process."""
    METHODS[name](*inputs(64))
    qkv = inputs(n)
    before = read_peak_memory(reset=True)
    METHODS[name](*qkv)
    return read_peak_memory() - before


def read_peak_memory(*, reset: bool = False) -> float:
    """Peak memory of this process in MB (Linux); `reset` sets it to the current memory first.

    Not by getrusage, where a process inherits the peak of its parent.
    """
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return _read_status("VmHWM")


def read_memory() -> float:
    """Current memory of this process in MB (Linux)."""
    return _read_status("VmRSS")


def _read_status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(quick: bool) -> dict:
    """Seconds, megabytes and the ratios that have goals."""
    long_n, short_n = (2048, 1024) if quick else (8192, 4096)
    rounds = 2 if quick else 5
    one_layer = time_methods(ONE_LAYER, long_n, rounds)
    two_layers = time_methods(TWO_LAYERS, short_n, rounds)
    memory = {method.__name__: peak(method.__name__, long_n) for method in ONE_LAYER}
    memory |= {method.__name__: peak(method.__name__, short_n) for method in TWO_LAYERS[1:]}
    ratios = {
        "five statistics / fused": one_layer["five"] / one_layer["fused"],
        "five statistics, causal / causal fused": one_layer["five_causal"]
        / one_layer["fused_causal"],
        "five statistics, dense / ours": one_layer["five_dense"] / one_layer["five"],
        "five statistics, dense / fused": one_layer["five_dense"] / one_layer["fused"],
        "five statistics, pure torch / fused": one_layer["five_in_torch"] / one_layer["fused"],
        "five statistics, MB": memory["five"],
        "five statistics, dense, MB": memory["five_dense"],
        "two layers / fused": two_layers["two_layers"] / two_layers["fused"],
        "two layers, dense / ours": two_layers["two_layers_dense"] / two_layers["two_layers"],
        "two layers, MB": memory["two_layers"],
        "two layers, dense, MB": memory["two_layers_dense"],
    }
    return {
        "n": [long_n, short_n],
        "threads": torch.get_num_threads(),
        "one layer, s": one_layer,
        "two layers, s": two_layers,
        "peak, MB": memory,
        "ratios": ratios,
    }


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 2,048 and 1,024, two rounds")
    parser.add_argument("--peak", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_here(options.peak, options.n))
        return
    results = measure(options.quick)
    if options.json:
        print(json.dumps(results | {"goals": GOALS}, indent=2))
        return
    print(f"B = {B}, H = {H}, D = {D}; {results['threads']} threads")
    for title, n in (("one layer, s", results["n"][0]), ("two layers, s", results["n"][1])):
        print(f"\n{title.removesuffix(', s')}, n = {n:,}: seconds, peak MB")
        for name, value in results[title].items():
            print(f"  {name:28} {value:9.3f} {results['peak, MB'][name]:9.0f}")
    print()
    for name, value in results["ratios"].items():
        print(f"  {name:42} {value:9.2f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


if __name__ == "__main__":
    main()

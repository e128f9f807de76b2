"""Statistics of attention without the n×n matrix, against one fused forward and against weights that are written out.

    python benchmarks/measures.py [--json] [--quick]

Times: all ways take turns in one process, and the figure is each one's best round; the slow ones, which write weights
out, sit out after the second. Memory: what a fresh process holds at most beyond its inputs, after a small warm-up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention

from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.measures import registry
from neural.tracking.statistics import averaged, compare, head_statistics

B, H, D = 1, 8, 64
FIVE = ("entropy", "span", "first_key_mass", "largest_weight", "previous_token_mass")
TWO = ("js_between", "cosine_between")
GOALS = {"five statistics / fused": 1.25, "two layers, written out / ours": 8.0, "five statistics, MB": 100.0}


def fused(q, k, v):
    """One forward of torch's attention."""
    return scaled_dot_product_attention(q, k, v)


def five(q, k, v):
    """Entropy, span, first key, largest weight, previous token: one pass."""
    return head_statistics(q, k, wanted=FIVE)


def five_causal(q, k, v):
    """The same of a causal layer."""
    return head_statistics(q, k, Mask(causal=True), wanted=FIVE)


def fused_causal(q, k, v):
    """One causal forward."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def five_in_torch(q, k, v):
    """The pure torch way: chunks of rows written out."""
    with plain_torch():
        return five(q, k, v)


def written_out(names, *layers):
    """The definitions, on weights that are written out."""
    maps = [Look(q, k).maps() for q, k in layers]
    return averaged({name: registry.get(name)().plain(*maps) for name in names})


def five_written_out(q, k, v):
    """The five of one layer, as everybody writes them."""
    return written_out(FIVE, (q, k))


def two_layers(q, k, v):
    """Jensen–Shannon and cosine of two layers, row by row."""
    return compare(q, k, k, q, wanted=TWO)


def two_layers_written_out(q, k, v):
    """The same, as everybody writes it."""
    return written_out(TWO, (q, k), (k, q))


ONE_LAYER = (fused, five, fused_causal, five_causal, five_in_torch, five_written_out)
TWO_LAYERS = (fused, two_layers, two_layers_written_out)
SLOW = (five_in_torch, five_written_out, two_layers_written_out)
WAYS = {way.__name__: way for way in (*ONE_LAYER, *TWO_LAYERS)}


def inputs(n: int) -> list[torch.Tensor]:
    """Queries, keys and values."""
    torch.manual_seed(0)
    return [torch.randn(B, H, n, D) for _ in range(3)]


def seconds(ways, n: int, rounds: int) -> dict[str, float]:
    """The best round of each, all taking turns."""
    qkv, best = inputs(n), {}
    for way in ways:
        way(*inputs(64))   # compiles
    for done in range(rounds):
        for way in ways if done < 2 else [way for way in ways if way not in SLOW]:
            started = time.perf_counter()
            way(*qkv)
            best[way.__name__] = min(best.get(way.__name__, float("inf")), time.perf_counter() - started)
    return best


def peak(name: str, n: int) -> float:
    """Megabytes beyond the inputs, in a fresh process."""
    command = [sys.executable, __file__, "--peak", name, "--n", str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_here(name: str, n: int) -> float:
    """Megabytes beyond the inputs, in this process."""
    WAYS[name](*inputs(64))
    qkv = inputs(n)
    before = peak_so_far(forget=True)
    WAYS[name](*qkv)
    return peak_so_far() - before


def peak_so_far(*, forget: bool = False) -> float:
    """Megabytes at most (Linux); `forget` begins anew from what is held now.

    Not by getrusage, where a process starts with the peak of the one that started it.
    """
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmHWM")


def memory_now() -> float:
    """Megabytes of this process."""
    return _status("VmRSS")


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(quick: bool) -> dict:
    """Seconds, megabytes and the ratios that goals are set for."""
    many, few = (2048, 1024) if quick else (8192, 4096)
    rounds = 2 if quick else 5
    one, two = seconds(ONE_LAYER, many, rounds), seconds(TWO_LAYERS, few, rounds)
    memory = {way.__name__: peak(way.__name__, many) for way in ONE_LAYER}
    memory |= {way.__name__: peak(way.__name__, few) for way in TWO_LAYERS[1:]}
    ratios = {
        "five statistics / fused": one["five"] / one["fused"],
        "five statistics, causal / causal fused": one["five_causal"] / one["fused_causal"],
        "five statistics, written out / ours": one["five_written_out"] / one["five"],
        "five statistics, written out / fused": one["five_written_out"] / one["fused"],
        "five statistics, pure torch / fused": one["five_in_torch"] / one["fused"],
        "five statistics, MB": memory["five"],
        "five statistics, written out, MB": memory["five_written_out"],
        "two layers / fused": two["two_layers"] / two["fused"],
        "two layers, written out / ours": two["two_layers_written_out"] / two["two_layers"],
        "two layers, MB": memory["two_layers"],
        "two layers, written out, MB": memory["two_layers_written_out"],
    }
    return {"n": [many, few], "threads": torch.get_num_threads(), "one layer, s": one, "two layers, s": two,
            "peak, MB": memory, "ratios": ratios}  # fmt: skip


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 2,048 and 1,024, two rounds")
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_here(options.peak, options.n))
        return
    found = measure(options.quick)
    if options.json:
        print(json.dumps(found | {"goals": GOALS}, indent=2))
        return
    print(f"B = {B}, H = {H}, D = {D}; {found['threads']} threads")
    for title, n in (("one layer, s", found["n"][0]), ("two layers, s", found["n"][1])):
        print(f"\n{title.removesuffix(', s')}, n = {n:,}: seconds, peak MB")
        for name, value in found[title].items():
            print(f"  {name:28} {value:9.3f} {found['peak, MB'][name]:9.0f}")
    print()
    for name, value in found["ratios"].items():
        print(f"  {name:42} {value:9.2f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


if __name__ == "__main__":
    main()

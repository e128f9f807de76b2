"""Looking into a model of GPT-2's size: what watching costs, against writing all weights out.

    python benchmarks/inspection.py [--json] [--quick]

Watching: GPT-2 small's shape (12 layers × 12 heads, width 64) with random weights, one text of n positions. Memory:
the most that a fresh process holds in one pass with the watch and its measures, minus the same pass without; beside
it, what the weights of all heads alone would take. Accuracy: entropies of sampled rows against plain softmax in
double precision.

A page of all heads: its size, and how long until it is seen, against BertViz's; see pages.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from measures import FIVE, peak_so_far
from pages import GOALS as PAGE_GOALS
from pages import pages, show_pages

from neural.tracking.statistics import measured
from neural.tracking.watch import watch

LAYERS, HEADS, WIDTH, VOCABULARY = 12, 12, 64, 5_000
SAMPLED = 16
"""Rows of every head."""
GOALS = {"watch, share of all weights": 0.05, "watch, largest error of an entropy": 1e-4}


def gpt2(n: int) -> torch.nn.Module:
    """GPT-2 small without its output layer, whose scores would hide everything else; a smaller vocabulary."""
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=n, n_embd=HEADS * WIDTH, n_layer=LAYERS, n_head=HEADS, use_cache=False,
        attn_implementation="sdpa",
    )  # fmt: skip
    return transformers.GPT2Model._from_config(config).eval()


def ids(n: int) -> torch.Tensor:
    """A text of random words."""
    return torch.randint(0, VOCABULARY, (1, n), generator=torch.Generator().manual_seed(1))


def plain_pass(model: torch.nn.Module, text: torch.Tensor) -> None:
    """Nobody watches."""
    with torch.no_grad():
        model(text)


def watched_pass(model: torch.nn.Module, text: torch.Tensor) -> Any:
    """Entropy, span, first key, largest weight and previous token of every head."""
    seen = watch(model, text, measures=FIVE)
    seen.arrays()
    return seen


PASSES = {"plain": plain_pass, "watched": watched_pass}


def here(name: str, n: int) -> dict[str, float]:
    """Megabytes at most and seconds of one pass, in this process; of the watched one also the largest error."""
    model, text = gpt2(n), ids(n)
    PASSES[name](model, text[:, :64])   # compiles
    before, started = peak_so_far(forget=True), time.perf_counter()
    seen = PASSES[name](model, text)
    found = {"seconds": time.perf_counter() - started, "megabytes": peak_so_far() - before}
    return found if seen is None else {**found, "error": largest_error(seen, n), "layers": len(seen)}


def largest_error(seen: Any, n: int) -> float:
    """Of the entropies of sampled rows, nats, against softmax in double precision."""
    rows = torch.tensor(np.sort(np.random.default_rng(0).choice(n, min(SAMPLED, n), replace=False)))
    worst = 0.0
    for call in seen:
        q, k = call.look.q[:, :, rows].double(), call.look.k.double()
        scores = q @ k.mT * WIDTH**-0.5
        weights = scores.masked_fill(torch.arange(n) > rows[:, None], -torch.inf).softmax(-1)
        exact = -torch.special.xlogy(weights, weights).sum(-1)
        ours = measured(["entropy"], call.look)["entropy"][:, :, rows]
        worst = max(worst, float((ours - exact).abs().max()))
    return worst


def in_a_fresh_process(name: str, n: int) -> dict[str, float]:
    """As `here`."""
    command = [sys.executable, __file__, "--only", name, "--n", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def watching(quick: bool) -> dict[str, Any]:
    """Megabytes, seconds and the share of what all weights would take."""
    n = 1_024 if quick else 4_096
    found = {name: in_a_fresh_process(name, n) for name in PASSES}
    whole = LAYERS * HEADS * n * n * 4 / 2**20
    extra = found["watched"]["megabytes"] - found["plain"]["megabytes"]
    return {
        "n": n, "passes": found, "all weights, MB": whole, "extra, MB": extra,
        "ratios": {
            "watch, share of all weights": extra / whole,
            "watch, largest error of an entropy": found["watched"]["error"],
            "watched pass / plain pass, seconds": found["watched"]["seconds"] / found["plain"]["seconds"],
        },
    }  # fmt: skip


def show_watching(found: dict[str, Any]) -> None:
    """As a table."""
    print(f"watching {LAYERS} × {HEADS} heads, n = {found['n']:,}, {torch.get_num_threads()} threads")
    for name, one in found["passes"].items():
        print(f"  {name:10} {one['seconds']:8.1f} s  {one['megabytes']:8.0f} MB at most")
    whole, extra = found["all weights, MB"], found["extra, MB"]
    print(f"  all weights written out take {whole:,.0f} MB, watching {extra:,.0f} MB")
    for name, value in found["ratios"].items():
        print(f"  {name:42} {value:9.2g}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 1,024")
    parser.add_argument("--only", choices=PASSES, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(here(options.only, options.n)))
        return
    found = {"watching": watching(options.quick), "pages": pages(quick=options.quick), "goals": GOALS | PAGE_GOALS}
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show_watching(found["watching"])
        show_pages(found["pages"])


if __name__ == "__main__":
    main()

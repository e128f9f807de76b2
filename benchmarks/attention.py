"""Time and memory of attention mechanisms against the usual implementations.

    python benchmarks/attention.py [--quick] [--json] [--chart attention.png] [--mechanism NAME]…

All mechanisms of the registry are measured, also those of other packages; `--mechanism` selects
some. Times are medians of the public call (`neural.attend`) in a process like a user's: default
threads, implementations in turns, and a product of matrices before every run, so that caches and
threads are not left as the kernel likes them. B = 1, H = 8, D = 64, float32. Memory is the largest
growth of a fresh process beyond the inputs. At the end, figures are compared with GOALS.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from measures import read_memory, read_peak_memory
from torch.nn import functional

import neural
from neural.core.registry import UnknownNameError
from neural.nn.attention import registry as attention
from neural.nn.mask import Mask

B, H, D, WINDOW = 1, 8, 64, 7
LENGTHS = [256, 1024, 2048, 4096, 16384]
QUICK = [256, 1024]
DENSE_IMPLEMENTATIONS = (
    "definition",
    "fused + n×n bias",
    "vectorized boundary bias",
    "nn.MultiheadAttention",
)
CLAIMED_MECHANISMS = ("localized", "boundary_aware", "linear")
"""Mechanisms with published figures; the others are measured at short lengths."""
MAX_LENGTH = dict.fromkeys(DENSE_IMPLEMENTATIONS, 4096) | dict.fromkeys(
    set(attention.names()) - set(CLAIMED_MECHANISMS), 1024
)
"""Longer inputs do not fit in memory or take minutes."""
BASELINE = "fused (SDPA)"
ROUND_SECONDS = 0.3
"""Time per implementation and round: one run of a slow one, many of a fast one."""

GOALS = {
    "localized, forward, n = 4,096": 0.006,
    "localized, forward+backward, n = 4,096": 0.010,
    "boundary_aware, forward+backward, n = 1,024": 1.10,
    "boundary_aware, forward+backward, n = 2,048": 1.10,
    "boundary_aware, forward+backward, n = 4,096": 1.10,
    "additive, forward+backward, n = 256": 15.0,
    "additive, forward+backward, n = 1,024": 15.0,
    "linear, causal, forward+backward, exponent": 1.1,
}
"""Largest time over fused attention, or largest growth exponent of the time from n = 1,024 on."""

Run = Callable[[], torch.Tensor]


def create_inputs(n: int, grad: bool) -> list[torch.Tensor]:
    """Queries, keys and values, (B, H, n, D) each."""
    torch.manual_seed(0)
    return [torch.randn(B, H, n, D, requires_grad=grad) for _ in range(3)]


def implementations(n: int, grad: bool) -> dict[str, tuple[Run, list[torch.Tensor]]]:
    """By name a function to run, and the tensors that get gradients."""
    q, k, v = create_inputs(n, grad)
    score = torch.rand(B, n, requires_grad=grad)
    functions: dict[str, tuple[Run, list[torch.Tensor]]] = {
        BASELINE: (lambda: functional.scaled_dot_product_attention(q, k, v), [q, k, v]),
        "localized": (
            lambda: neural.attend(q, k, v, mechanism="localized", window=WINDOW),
            [q, k, v],
        ),
        "boundary_aware": (
            lambda: neural.attend(q, k, v, mechanism="boundary_aware", extra=score),
            [q, k, v, score],
        ),
        "linear": (lambda: neural.attend(q, k, v, mechanism="linear"), [q, k, v]),
        "linear, causal": (
            lambda: neural.attend(q, k, v, mechanism="linear", causal=True),
            [q, k, v],
        ),
        "definition": (lambda: (q @ k.transpose(-1, -2) / D**0.5).softmax(dim=-1) @ v, [q, k, v]),
        "vectorized boundary bias": (lambda: vectorized(q, k, v, score), [q, k, v, score]),
    }
    band = Mask(reach=WINDOW // 2)
    functions["fused + n×n bias"] = (lambda: banded(q, k, v, band, n), [q, k, v])
    functions |= {
        name: run_mechanism(name, q, k, v) for name in attention.names() if name not in functions
    }
    return functions | peers(n, q, k, v)


def select_names(n: int, names: tuple[str, ...]) -> list[str]:
    """Implementations to measure at a length: the given ones, or all that do not take too long."""
    if names:
        return [BASELINE, *names]
    return [name for name in implementations(64, grad=False) if n <= MAX_LENGTH.get(name, n)]


def run_mechanism(
    name: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[Run, list[torch.Tensor]]:
    """A mechanism of the registry with default arguments."""
    mechanism = attention.get(name)()
    example = mechanism.example_extra(q, k)
    extra = None if example is None else example.detach().requires_grad_(q.requires_grad)
    leaves = [q, k, v] if extra is None else [q, k, v, extra]
    return (lambda: neural.attend(q, k, v, mechanism=mechanism, extra=extra)), leaves


def vectorized(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score: torch.Tensor
) -> torch.Tensor:
    """Boundary-aware attention as usually implemented: an n×n bias added to n×n scores."""
    bias = (score.unsqueeze(-1) + score.unsqueeze(-2)) * 0.5
    return (q @ k.transpose(-1, -2) / D**0.5 + bias.unsqueeze(1)).softmax(dim=-1) @ v


def nested_loops(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score: torch.Tensor
) -> torch.Tensor:
    """The same with a Python loop over all pairs."""
    n = q.shape[-2]
    bias = torch.zeros(B, n, n)
    for i in range(n):
        for j in range(n):
            bias[:, i, j] = (score[:, i] + score[:, j]) * 0.5
    return (q @ k.transpose(-1, -2) / D**0.5 + bias.unsqueeze(1)).softmax(dim=-1) @ v


def banded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, n: int) -> torch.Tensor:
    """A window by an n×n mask, as often implemented. The mask takes 1 % of the time."""
    return functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask.to_keep_mask(n, n, q.device)
    )


def peers(
    n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> dict[str, tuple[Run, list[torch.Tensor]]]:
    """Attention of other packages, if installed, with their fastest options.

    torch's module includes its projections. local-attention uses blocks: of 4 to 64 positions, 16
    are fastest, and each query then has 48 keys, which include a window of 7.
    """
    functions: dict[str, tuple[Run, list[torch.Tensor]]] = {}
    module = torch.nn.MultiheadAttention(H * D, H, batch_first=True)
    x = q.detach().transpose(1, 2).flatten(2).requires_grad_(q.requires_grad)
    functions["nn.MultiheadAttention"] = (lambda: module(x, x, x, need_weights=False)[0], [x])
    try:
        from local_attention import LocalAttention
    except ImportError:
        return functions
    local = LocalAttention(
        window_size=16,
        look_backward=1,
        look_forward=1,
        exact_windowsize=False,
        autopad=True,
        dim=D,
        use_rotary_pos_emb=False,
    )
    functions["local-attention"] = (lambda: local(q, k, v), [q, k, v])
    return functions


def compile_flex(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Run | None:
    """Compiled FlexAttention with a block mask; on CPUs forward only. Needs a C++ compiler."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def is_near(_batch: int, _head: int, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (query - key).abs() <= WINDOW // 2

    try:
        block = create_block_mask(is_near, None, None, n, n, device="cpu")
        run = torch.compile(flex_attention)
        run(q, k, v, block_mask=block)
    except Exception as error:  # any error of a peer
        print(f"  FlexAttention does not run here: {type(error).__name__}", file=sys.stderr)
        return None
    return lambda: run(q, k, v, block_mask=block)


def time_run(run: Run, leaves: list[torch.Tensor], grad: bool) -> float:
    """Seconds of one run, with its backward pass if `grad`."""
    for leaf in leaves:
        leaf.grad = None
    start = time.perf_counter()
    if grad:
        run().sum().backward()
    else:
        with torch.no_grad():
            run()
    return time.perf_counter() - start


def time_all(
    n: int, grad: bool, rounds: int, with_flex: bool, names: tuple[str, ...]
) -> dict[str, float]:
    """Median seconds of each implementation; they alternate, and fast ones run several times."""
    functions = implementations(n, grad)
    selected = {name: functions[name] for name in select_names(n, names)}
    if with_flex and not grad:
        q, k, v = create_inputs(n, grad=False)
        run = compile_flex(n, q, k, v)
        selected |= {"FlexAttention": (run, [])} if run else {}
    x, weight = torch.randn(n, H * D), torch.randn(H * D, H * D)
    times: dict[str, list[float]] = {name: [] for name in selected}
    for run, leaves in selected.values():
        time_run(run, leaves, grad)  # warm-up
    for _ in range(rounds):
        for name, (run, leaves) in selected.items():
            total = 0.0
            while total < ROUND_SECONDS:
                torch.mm(x, weight)  # what a network does between two attentions
                seconds = time_run(run, leaves, grad)
                total += max(seconds, 1e-4)
                times[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def peak(name: str, n: int, grad: bool) -> float:
    """Peak memory in MB that one run adds, in a fresh process."""
    command = [
        sys.executable,
        __file__,
        "--peak",
        name,
        "--n",
        str(n),
        *(["--grad"] if grad else []),
    ]
    # malloc returns every block of 64 kB or more to the system: no freed memory is reused unseen
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    return float(
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    )


def measure_peak(name: str, n: int, grad: bool) -> None:
    """Print the growth of this process; a short input first loads code and kernels."""
    warm_up, small_leaves = implementations(64, grad)[name]
    time_run(warm_up, small_leaves, grad)
    run, leaves = implementations(n, grad)[name]
    read_peak_memory(reset=True)
    before = read_memory()
    time_run(run, leaves, grad)
    print(read_peak_memory() - before)


def exponent(series: dict[int, float]) -> float:
    """Growth exponent: slope of a line through log n and log value."""
    points = [(math.log(n), math.log(max(value, 1e-9))) for n, value in series.items()]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )


def loops_ratio(n: int) -> float:
    """Time of nested loops over that of our boundary-aware attention, forward."""
    q, k, v = create_inputs(n, grad=False)
    score = torch.rand(B, n)

    def run_loops() -> torch.Tensor:
        return nested_loops(q, k, v, score)

    def run_ours() -> torch.Tensor:
        return neural.attend(q, k, v, mechanism="boundary_aware", extra=score)

    loops_seconds = statistics.median(time_run(run_loops, [], grad=False) for _ in range(3))
    return loops_seconds / statistics.median(time_run(run_ours, [], grad=False) for _ in range(9))


def collect_figures(results: dict[str, dict[str, dict[int, float]]]) -> dict[str, float]:
    """The figures of GOALS, as far as they were measured."""
    figures: dict[str, float] = {}
    for quantity in ("forward", "forward+backward"):
        baseline = results[quantity][BASELINE]
        for name, series in results[quantity].items():
            for n, seconds in series.items():
                figures[f"{name}, {quantity}, n = {n:,}"] = seconds / baseline[n]
            long = {n: seconds for n, seconds in series.items() if n >= 1024}
            if len(long) > 1:
                figures[f"{name}, {quantity}, exponent"] = exponent(long)
    return {name: figures[name] for name in GOALS if name in figures}


def draw_chart(results: dict[str, dict[str, dict[int, float]]], path: Path) -> None:
    """Plot seconds and megabytes against length, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.6))
    for axis, quantity, label in zip(
        axes, ("forward+backward", "memory"), ("seconds", "MB"), strict=True
    ):
        for name, series in results[quantity].items():
            # short series would hide the others
            if len(series) > 2 or len(results[quantity]) <= 4:
                axis.loglog(
                    list(series),
                    [max(value, 1e-4) for value in series.values()],
                    marker="o",
                    label=name,
                )
        axis.set(xlabel="positions", ylabel=label, title=f"{quantity}, B=1 H=8 D=64")
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def parse_mechanism(name: str) -> str:
    """The name of a mechanism; an error of the command line with the closest name if it has none."""
    try:
        attention.get(name)
    except UnknownNameError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def main() -> None:
    """Print tables of ratios and exponents, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="short inputs, one round: does it run?"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--chart", type=Path, help="file of the chart (svg or png)")
    parser.add_argument(
        "--mechanism",
        action="append",
        type=parse_mechanism,
        metavar="NAME",
        help="only this one, at every length; may be repeated",
    )
    parser.add_argument(
        "--flex", action="store_true", help="also FlexAttention (compiles for a minute)"
    )
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--grad", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.peak:
        measure_peak(options.peak, options.n, options.grad)
        return
    lengths = QUICK if options.quick else LENGTHS
    results: dict[str, dict[str, dict[int, float]]] = {
        "forward": {},
        "forward+backward": {},
        "memory": {},
    }
    names = tuple(options.mechanism or ())
    for n in lengths:
        # long inputs take minutes: show which length is measured
        print(f"n = {n:,}: {', '.join(names) or 'all mechanisms'} …", file=sys.stderr, flush=True)
        rounds = 1 if options.quick or n > 4096 else 3
        with_flex = options.flex and n == 4096
        for quantity, grad in (("forward", False), ("forward+backward", True)):
            for name, seconds in time_all(n, grad, rounds, with_flex, names).items():
                results[quantity].setdefault(name, {})[n] = seconds
        for name in select_names(n, names):
            results["memory"].setdefault(name, {})[n] = peak(name, n, grad=True)
    loops = {n: loops_ratio(n) for n in (64, 128, 256)} if not names else {}
    if options.chart:
        draw_chart(results, options.chart)
    if options.json:
        figures = {"figures": collect_figures(results), "goals": GOALS}
        loops_name = "nested loops over boundary_aware"
        print(json.dumps({**results, loops_name: loops, **figures}, indent=2))
        return
    print_tables(results, lengths)
    if loops:
        ratios = ", ".join(f"n={n}: {ratio:.0f}×" for n, ratio in loops.items())
        print(f"\nnested loops over boundary_aware, forward: {ratios}")
    print("\ngoals: time over fused attention, medians")
    for name, value in collect_figures(results).items():
        note = "" if value <= GOALS[name] else "   missed"
        print(f"  {name:46}{value:10.4f}   ≤ {GOALS[name]:g}{note}")


def print_tables(results: dict[str, dict[str, dict[int, float]]], lengths: list[int]) -> None:
    """Print time ratios, memory and growth exponents."""
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    print(f"{machine}; B={B} H={H} D={D} window={WINDOW}")
    for quantity in ("forward", "forward+backward"):
        baseline = results[quantity][BASELINE]
        print(f"\n{quantity}: time over fused attention; growth exponent from 1,024 on")
        print(f"{'':26}" + "".join(f"{n:>10,}" for n in lengths) + f"{'exponent':>10}")
        print(f"{'fused (SDPA), ms':26}" + "".join(f"{1000 * baseline[n]:10.1f}" for n in lengths))
        for name, series in results[quantity].items():
            cells = "".join(
                f"{series[n] / baseline[n]:10.3f}" if n in series else f"{'–':>10}" for n in lengths
            )
            long = {n: value for n, value in series.items() if n >= 1024}
            print(f"{name:26}{cells}" + (f"{exponent(long):10.2f}" if len(long) > 1 else ""))
    print("\nmemory of forward+backward, MB")
    for name, series in results["memory"].items():
        cells = "".join(f"{series[n]:10.0f}" if n in series else f"{'–':>10}" for n in lengths)
        long = {n: value for n, value in series.items() if n >= 1024}
        print(f"{name:26}{cells}" + (f"{exponent(long):10.2f}" if len(long) > 1 else ""))


if __name__ == "__main__":
    main()

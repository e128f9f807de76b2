"""Time and memory of attention, next to what people use today; ratios in one run.

    python benchmarks/attention.py [--quick] [--json] [--chart attention.png] [--mechanism NAME]…

Every mechanism that programs can name is in it, those of other packages too; `--mechanism` takes some of them alone.
Every way is run in turn, a few rounds, and the best of each counts. B = 1, H = 8, D = 64, two threads, 32-bit floats.
Memory is the largest growth of the process over what the inputs take, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from measures import memory_now, peak_so_far
from torch.nn import functional

import neural
from neural.modules.attention import registry as attention
from neural.modules.mask import Mask

B, H, D, WINDOW = 1, 8, 64, 7
LENGTHS = [256, 1024, 2048, 4096, 16384]
QUICK = [256, 1024]
N_BY_N = ("definition", "fused + n×n bias", "vectorised boundary bias", "nn.MultiheadAttention")
FIGURES = ("localized", "boundary_aware", "linear")
"""The mechanisms that we claim something about; the others are measured as far as that is quick."""
LONGEST = dict.fromkeys(N_BY_N, 4096) | dict.fromkeys(set(attention.names()) - set(FIGURES), 1024)
"""Where a way holds the n×n matrix, longer inputs do not fit or take minutes."""
BASE = "fused (SDPA)"

TURN = 0.3
"""Seconds that a way runs in its turn: one run of a slow one, many of a quick one."""

Run = Callable[[], torch.Tensor]


def inputs(n: int, grad: bool) -> list[torch.Tensor]:
    """Queries, keys and values."""
    torch.manual_seed(0)
    return [torch.randn(B, H, n, D, requires_grad=grad) for _ in range(3)]


def ways(n: int, grad: bool) -> dict[str, tuple[Run, list[torch.Tensor]]]:
    """Name → what to run, and the tensors that want gradients."""
    q, k, v = inputs(n, grad)
    score = torch.rand(B, n, requires_grad=grad)
    made: dict[str, tuple[Run, list[torch.Tensor]]] = {
        BASE: (lambda: functional.scaled_dot_product_attention(q, k, v), [q, k, v]),
        "localized": (lambda: neural.attend(q, k, v, mechanism="localized", window=WINDOW), [q, k, v]),
        "boundary_aware": (lambda: neural.attend(q, k, v, mechanism="boundary_aware", extra=score), [q, k, v, score]),
        "linear": (lambda: neural.attend(q, k, v, mechanism="linear"), [q, k, v]),
        "linear, causal": (lambda: neural.attend(q, k, v, mechanism="linear", causal=True), [q, k, v]),
        "definition": (lambda: (q @ k.transpose(-1, -2) / D**0.5).softmax(dim=-1) @ v, [q, k, v]),
        "vectorised boundary bias": (lambda: vectorised(q, k, v, score), [q, k, v, score]),
    }
    band = Mask(reach=WINDOW // 2)
    made["fused + n×n bias"] = (lambda: banded(q, k, v, band, n), [q, k, v])
    made |= {name: by_name(name, q, k, v) for name in attention.names() if name not in made}
    return made | peers(n, q, k, v)


def chosen(n: int, names: tuple[str, ...]) -> list[str]:
    """The ways to measure at a length: those that were named, or all that do not take too long."""
    if names:
        return [BASE, *names]
    return [name for name in ways(64, grad=False) if n <= LONGEST.get(name, n)]


def by_name(name: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[Run, list[torch.Tensor]]:
    """A mechanism of the registry as it is when nothing is set, with what its learned part might give."""
    mechanism = attention.get(name)()
    given = mechanism.extra(q, k)
    extra = None if given is None else given.detach().requires_grad_(q.requires_grad)
    leaves = [q, k, v] if extra is None else [q, k, v, extra]
    return (lambda: neural.attend(q, k, v, mechanism=mechanism, extra=extra)), leaves


def vectorised(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score: torch.Tensor) -> torch.Tensor:
    """Boundary-aware attention as it is usually written: the n×n bias, added to the n×n scores."""
    bias = (score.unsqueeze(-1) + score.unsqueeze(-2)) * 0.5
    return (q @ k.transpose(-1, -2) / D**0.5 + bias.unsqueeze(1)).softmax(dim=-1) @ v


def nested_loops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score: torch.Tensor) -> torch.Tensor:
    """The same as it is first thought of: the bias, pair by pair."""
    n = q.shape[-2]
    bias = torch.zeros(B, n, n)
    for i in range(n):
        for j in range(n):
            bias[:, i, j] = (score[:, i] + score[:, j]) * 0.5
    return (q @ k.transpose(-1, -2) / D**0.5 + bias.unsqueeze(1)).softmax(dim=-1) @ v


def banded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, n: int) -> torch.Tensor:
    """A window by an n×n mask: what is often done, at best. Making the mask takes a hundredth of the time."""
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask.kept(n, n, q.device))


def peers(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, tuple[Run, list[torch.Tensor]]]:
    """Other people's attention, where it is installed and runs, as quick as it can be made to be.

    torch's module includes its projections. local-attention looks at blocks: of 4 to 64 positions, 16 are quickest, and
    each query then sees 48 keys, so all that a window of 7 has.
    """
    made: dict[str, tuple[Run, list[torch.Tensor]]] = {}
    module = torch.nn.MultiheadAttention(H * D, H, batch_first=True)
    x = q.detach().transpose(1, 2).flatten(2).requires_grad_(q.requires_grad)
    made["nn.MultiheadAttention"] = (lambda: module(x, x, x, need_weights=False)[0], [x])
    try:
        from local_attention import LocalAttention
    except ImportError:
        return made
    local = LocalAttention(
        window_size=16, look_backward=1, look_forward=1, exact_windowsize=False, autopad=True, dim=D,
        use_rotary_pos_emb=False,
    )  # fmt: skip
    made["local-attention"] = (lambda: local(q, k, v), [q, k, v])
    return made


def flex(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Run | None:
    """FlexAttention with a block mask, compiled; forward only on CPU, and it needs a C++ compiler."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def near(_batch: int, _head: int, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (query - key).abs() <= WINDOW // 2

    try:
        block = create_block_mask(near, None, None, n, n, device="cpu")
        run = torch.compile(flex_attention)
        run(q, k, v, block_mask=block)
    except Exception as error:   # whatever a peer raises, it does not run here
        print(f"  FlexAttention does not run here: {type(error).__name__}", file=sys.stderr)
        return None
    return lambda: run(q, k, v, block_mask=block)


def seconds(run: Run, leaves: list[torch.Tensor], grad: bool) -> float:
    """One run, with its backward where gradients are wanted."""
    for leaf in leaves:
        leaf.grad = None
    started = time.perf_counter()
    if grad:
        run().sum().backward()
    else:
        with torch.no_grad():
            run()
    return time.perf_counter() - started


def timed(n: int, grad: bool, rounds: int, with_flex: bool, names: tuple[str, ...]) -> dict[str, float]:
    """Best seconds of each way; they take turns, and a quick way runs several times in its turn."""
    made = ways(n, grad)
    todo = {name: made[name] for name in chosen(n, names)}
    if with_flex and not grad:
        q, k, v = inputs(n, grad=False)
        run = flex(n, q, k, v)
        todo |= {"FlexAttention": (run, [])} if run else {}
    best = dict.fromkeys(todo, math.inf)
    for turn in range(rounds + 1):
        for name, (run, leaves) in todo.items():
            spent = 0.0
            while spent < TURN:
                taken = seconds(run, leaves, grad)
                spent += max(taken, 1e-4)
                best[name] = min(best[name], taken) if turn else best[name]   # the first turn warms up
                if not turn:
                    break
    return best


def peak(name: str, n: int, grad: bool) -> float:
    """Megabytes that one run adds, in a fresh process."""
    command = [sys.executable, __file__, "--peak", name, "--n", str(n), *(["--grad"] if grad else [])]
    # every block of 64 kB and more comes from the system and goes back to it: nothing hides in memory freed before
    exact = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=exact).stdout)


def measure_peak(name: str, n: int, grad: bool) -> None:
    """Print how far the process grew; a short input first, so that code and kernels are loaded."""
    small_run, small = ways(64, grad)[name]
    seconds(small_run, small, grad)
    run, leaves = ways(n, grad)[name]
    peak_so_far(forget=True)
    before = memory_now()
    seconds(run, leaves, grad)
    print(peak_so_far() - before)


def exponent(series: dict[int, float]) -> float:
    """Slope of the line through log n, log value."""
    points = [(math.log(n), math.log(max(value, 1e-9))) for n, value in series.items()]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def loops_ratio(n: int) -> float:
    """Nested loops over our boundary-aware attention, forward."""
    q, k, v = inputs(n, grad=False)
    score = torch.rand(B, n)
    slow = min(seconds(lambda: nested_loops(q, k, v, score), [], grad=False) for _ in range(2))
    ours = lambda: neural.attend(q, k, v, mechanism="boundary_aware", extra=score)  # noqa: E731 (as short as its peer)
    return slow / min(seconds(ours, [], grad=False) for _ in range(5))


def chart(found: dict[str, dict[str, dict[int, float]]], path: Path) -> None:
    """Seconds and megabytes against length, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.6))
    for axis, what, label in zip(axes, ("forward+backward", "memory"), ("seconds", "MB"), strict=True):
        for name, series in found[what].items():
            if len(series) > 2 or len(found[what]) <= 4:   # those that are followed no further would hide the others
                axis.loglog(list(series), [max(value, 1e-4) for value in series.values()], marker="o", label=name)
        axis.set(xlabel="positions", ylabel=label, title=f"{what}, B=1 H=8 D=64")
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Tables of ratios, exponents and goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short inputs, one round: does it run?")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--chart", type=Path, help="draw the figures here (svg or png)")
    parser.add_argument("--mechanism", action="append", choices=attention.names(), metavar="NAME",
                        help="this one alone, at every length; may stand several times")  # fmt: skip
    parser.add_argument("--flex", action="store_true", help="FlexAttention too (compiles for a minute)")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--grad", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    warnings.filterwarnings("ignore")
    if options.peak:
        measure_peak(options.peak, options.n, options.grad)
        return
    lengths = QUICK if options.quick else LENGTHS
    found: dict[str, dict[str, dict[int, float]]] = {"forward": {}, "forward+backward": {}, "memory": {}}
    names = tuple(options.mechanism or ())
    for n in lengths:
        rounds = 1 if options.quick else 5 if n <= 4096 else 2
        for what, grad in (("forward", False), ("forward+backward", True)):
            for name, value in timed(n, grad, rounds, options.flex and n == 4096, names).items():
                found[what].setdefault(name, {})[n] = value
        for name in chosen(n, names):
            found["memory"].setdefault(name, {})[n] = peak(name, n, grad=True)
    loops = {n: loops_ratio(n) for n in (64, 128, 256)} if not names else {}
    if options.chart:
        chart(found, options.chart)
    if options.json:
        print(json.dumps({**found, "nested loops over boundary_aware": loops}, indent=2))
        return
    report(found, lengths)
    if loops:
        ratios = ", ".join(f"n={n}: {ratio:.0f}×" for n, ratio in loops.items())
        print(f"\nnested loops over boundary_aware, forward: {ratios}")


def report(found: dict[str, dict[str, dict[int, float]]], lengths: list[int]) -> None:
    """The tables."""
    machine = f"{platform.machine()}, {os.cpu_count()} threads, torch {torch.__version__}"
    print(f"{machine}; B={B} H={H} D={D} window={WINDOW}")
    for what in ("forward", "forward+backward"):
        base = found[what][BASE]
        print(f"\n{what}: time over fused attention; growth exponent from 1,024 on")
        print(f"{'':26}" + "".join(f"{n:>10,}" for n in lengths) + f"{'exponent':>10}")
        print(f"{'fused (SDPA), ms':26}" + "".join(f"{1000 * base[n]:10.1f}" for n in lengths))
        for name, series in found[what].items():
            cells = "".join(f"{series[n] / base[n]:10.3f}" if n in series else f"{'–':>10}" for n in lengths)
            long = {n: value for n, value in series.items() if n >= 1024}
            print(f"{name:26}{cells}" + (f"{exponent(long):10.2f}" if len(long) > 1 else ""))
    print("\nmemory of forward+backward, MB")
    for name, series in found["memory"].items():
        cells = "".join(f"{series[n]:10.0f}" if n in series else f"{'–':>10}" for n in lengths)
        long = {n: value for n, value in series.items() if n >= 1024}
        print(f"{name:26}{cells}" + (f"{exponent(long):10.2f}" if len(long) > 1 else ""))


if __name__ == "__main__":
    main()

"""Cost of a step of every paradigm and estimator as m grows: seconds, classifier calls, exponent.

    python benchmarks/focus.py [--quick] [--json]

A step is scores, loss and gradients of 8 examples, with the networks of examples/focus (focus 64 →
256 → 1, classifier 64 → 128 → 3). First with all segments different, as in the formula m·f +
calls·g: f is measured with soft and g with LVML at the largest m, the others are predicted. Then
with mosaics of 1,000 images, each of which is scored and classified once per batch. All alternate
in one process with one thread; the figure is the CPU time of the best round of each.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import torch

from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.estimator import Estimator
from neural.tasks.focus.estimators import registry as estimators
from neural.tasks.focus.estimators.exact import Exact
from neural.tasks.focus.estimators.nucleus import Nucleus
from neural.tasks.focus.model import CLASSIFIER_LOSS, FocusModel
from neural.tasks.focus.paradigm import Paradigm, ParadigmProgress
from neural.tasks.focus.paradigms import registry as paradigms
from neural.tasks.focus.paradigms.lvml import Lvml
from neural.tasks.focus.segment_batch import SegmentBatch
from neural.tasks.focus.training_plan import AUTO_NUCLEUS_MASS, MAX_AUTO_SAMPLES

B, D, C, K, NUM_IMAGES = 8, 64, 3, MAX_AUTO_SAMPLES, 1000
COMBINED_PARADIGMS = ("auto", "hybrid", "annealed")
"""Not measured: at every step they are one of the others."""
GOAL = 3.0
"""Largest time of `auto` at m = 1,000, relative to soft."""


@dataclass
class Method:
    """A paradigm with an estimator: one row of the table."""

    name: str
    paradigm: Paradigm
    estimator: Estimator
    is_exact: bool

    def samples(self, m: int) -> int:
        """Segments that the estimator may classify."""
        return m if self.is_exact else min(K, m)


def list_methods() -> list[Method]:
    """Every paradigm with exact sums, then LVML with every estimator."""
    exact = [
        Method(
            name, paradigms.get(name).example().at_progress(ParadigmProgress(0.0)), Exact(), True
        )
        for name in paradigms.names()
        if name not in COMBINED_PARADIGMS
    ]
    sampled = [
        Method(f"lvml, {name} {K}", Lvml(), estimators.get(name)(), False)
        for name in estimators.names()
        if name not in ("exact", "nucleus")
    ]
    return [
        *exact,
        *sampled,
        Method(f"auto's nucleus {K}", Lvml(), Nucleus(mass=AUTO_NUCLEUS_MASS), False),
    ]


def build_model() -> FocusModel:
    """The model, with fixed random weights."""
    torch.manual_seed(0)
    heads = (
        ("Focus", 256, "Output(1)", ""),
        ("Classifier", 128, f'Output({C}, activation="softmax")', CLASSIFIER_LOSS),
    )
    programs = [
        f"network {name} {{\n input: ({D},)\n layers:\n"
        f' Dense({width}, activation="relu")\n {head}\n {loss}\n}}'
        for name, width, head, loss in heads
    ]
    return FocusModel(
        *(check(text, CATALOGUE).networks[0] for text in programs), with_inference_network=True
    )


def time_step(model: FocusModel, method: Method, m: int, shared: bool) -> tuple[float, float]:
    """CPU seconds of a step, and classifier calls per example."""
    random = torch.Generator().manual_seed(m)
    x = torch.randn(*((NUM_IMAGES,) if shared else (B, m)), D, generator=random)
    members = torch.randint(NUM_IMAGES, (B, m), generator=random) if shared else None
    y = torch.arange(B) % C
    model.classifier_calls = 0
    start = time.process_time()
    batch = SegmentBatch(
        model, x, y, estimator=method.estimator, samples=method.samples(m), members=members
    )
    method.paradigm.loss(batch).mean().backward()
    return time.process_time() - start, model.classifier_calls / B


def time_methods(
    methods: list[Method], sizes: list[int], rounds: int, *, shared: bool
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of the best round and classifier calls, by method, for every m."""
    model = build_model()
    results = {method.name: [(np.inf, 0.0)] * len(sizes) for method in methods}
    for column, m in enumerate(sizes):
        for _ in range(rounds + 1):
            for method in methods:
                seconds, calls = time_step(model, method, m, shared)
                best = results[method.name][column][0]
                results[method.name][column] = min(best, seconds), calls
                model.zero_grad(set_to_none=True)
    return results


def create_rows(sizes: list[int], results: dict[str, list[tuple[float, float]]]) -> list[dict]:
    """Rows of the table, with predictions of the formula from soft and LVML."""
    last, m = len(sizes) - 1, sizes[-1]
    f = results["soft"][last][0] / m
    g = max(0.0, results["lvml"][last][0] - results["soft"][last][0]) / m
    rows = []
    for name, cells in results.items():
        seconds, calls = (np.array(column) for column in zip(*cells, strict=True))
        is_large = np.array(sizes) >= 100
        exponent = np.polyfit(np.log(np.array(sizes)[is_large]), np.log(seconds[is_large]), 1)[0]
        rows.append(
            {
                "name": name,
                "m": sizes,
                "seconds": seconds.tolist(),
                "calls": calls.tolist(),
                "exponent": float(exponent),
                "formula": formula(calls[-1], m),
                "ratio to soft": (seconds / [cell[0] for cell in results["soft"]]).tolist(),
                "predicted ratio": float((m * f + calls[-1] * g) / (m * f + g)),
            }
        )
    return rows


def formula(calls: float, m: int) -> str:
    """The cost formula, in the notation of docs/focus.md."""
    return "m·f + m·g" if calls == m else "m·f + g" if calls == 1 else f"m·f + {calls:.0f}·g"


def print_table(title: str, rows: list[dict]) -> None:
    """Print the rows as a table."""
    sizes = rows[0]["m"]
    print(title)
    print(
        f"{'':28}"
        + "".join(f"{f'm = {m:,}':>12}" for m in sizes)
        + "   time ∝   calls     to soft   formula"
    )
    for row in rows:
        cells = "".join(f"{1000 * seconds:9.1f} ms" for seconds in row["seconds"])
        ratio = f"{row['ratio to soft'][-1]:.2f} ({row['predicted ratio']:.2f})"
        grows, calls = f"m^{row['exponent']:.2f}", f"{row['calls'][-1]:,.0f}"
        print(f"  {row['name']:26}{cells}   {grows:6} {calls:>8} {ratio:>12}   {row['formula']}")


def main() -> None:
    """Print both tables and the goal, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to m = 1,000, one round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes, rounds = ([10, 100, 1000], 1) if options.quick else ([10, 100, 1000, 10_000], 2)
    methods = list_methods()
    main_methods = [
        method
        for method in methods
        if method.name in ("soft", "hard", "lvml") or method.name.startswith("auto")
    ]
    different = create_rows(sizes, time_methods(methods, sizes, rounds, shared=False))
    shared = create_rows(sizes, time_methods(main_methods, sizes, rounds, shared=True))
    column = sizes.index(1000)
    ratios = {row["name"]: row["ratio to soft"][column] for row in different}
    ours = next(name for name in ratios if name.startswith("auto"))
    if options.json:
        data = {
            "all different": different,
            "images shared": shared,
            "ratio": ratios[ours],
            "goal": GOAL,
        }
        print(json.dumps(data, indent=1))
        return
    print(f"batch {B}, one thread, K = {K}; to soft: measured (by the formula), at the largest m")
    print_table("all segments different", different)
    print_table(f"mosaics of {NUM_IMAGES:,} images, each classified once", shared)
    print(f"at m = 1,000: {ours} / soft {ratios[ours]:.2f}   goal {GOAL:g}")


if __name__ == "__main__":
    main()

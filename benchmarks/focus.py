"""What a step of every paradigm and estimator costs as m grows: seconds, calls of the classifier, exponent, formula.

    python benchmarks/focus.py [--quick] [--json]

A step is scores, loss and gradients of 8 examples, with the networks of examples/focus (focus 64 → 256 → 1, classifier
64 → 128 → 3). First with segments that are all different, as in the formula m·f + calls·g: f is taken from soft and g
from LVML at the largest m, the rest is predicted by them. Then with mosaics of 1,000 pictures, each of which is scored
and read once for the whole batch. All take turns in one process with one thread; the figure is the processor time of
each one's best round.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import torch

from neural.language.check import check
from neural.standard import CATALOGUE
from neural.tasks.focusing.choice import HELD, MOST
from neural.tasks.focusing.estimator import Estimator
from neural.tasks.focusing.estimators import registry as estimators
from neural.tasks.focusing.estimators.exact import Exact
from neural.tasks.focusing.estimators.nucleus import Nucleus
from neural.tasks.focusing.networks import LOSS, FocusModel
from neural.tasks.focusing.paradigm import Moment, Paradigm
from neural.tasks.focusing.paradigms import registry as paradigms
from neural.tasks.focusing.paradigms.lvml import Lvml
from neural.tasks.focusing.segments import Segments

B, D, C, K, PICTURES = 8, 64, 3, MOST, 1000
CHANGING = ("auto", "hybrid", "annealed")
"""Not measured by themselves: at every moment they are one of the others."""
GOAL = 3.0
"""Of what soft costs, at m = 1,000, by a paradigm that commits."""


@dataclass
class Way:
    """One row."""

    name: str
    paradigm: Paradigm
    estimator: Estimator
    exact: bool

    def samples(self, m: int) -> int:
        """How many the estimator may read."""
        return m if self.exact else min(K, m)


def ways() -> list[Way]:
    """Every paradigm read exactly, then LVML by every estimator."""
    plain = [Way(name, paradigms.get(name).tiny().at(Moment(0.0)), Exact(), True)
             for name in paradigms.names() if name not in CHANGING]  # fmt: skip
    drawn = [Way(f"lvml, {name} {K}", Lvml(), estimators.get(name)(), False)
             for name in estimators.names() if name not in ("exact", "nucleus")]  # fmt: skip
    return [*plain, *drawn, Way(f"auto's nucleus {K}", Lvml(), Nucleus(mass=HELD), False)]


def model() -> FocusModel:
    """The same every time."""
    torch.manual_seed(0)
    heads = (("Focus", 256, "Output(1)", ""), ("Classifier", 128, f'Output({C}, activation="softmax")', LOSS))
    programs = [
        f'network {name} {{\n input: ({D},)\n layers:\n Dense({width}, activation="relu")\n {head}\n {loss}\n}}'
        for name, width, head, loss in heads
    ]
    return FocusModel(*(check(text, CATALOGUE).networks[0] for text in programs), informed=True)


def step(made: FocusModel, way: Way, m: int, shared: bool) -> tuple[float, float]:
    """Seconds, and calls of the classifier per example."""
    random = torch.Generator().manual_seed(m)
    x = torch.randn(*((PICTURES,) if shared else (B, m)), D, generator=random)
    members = torch.randint(PICTURES, (B, m), generator=random) if shared else None
    y = torch.arange(B) % C
    made.calls = 0
    begin = time.process_time()
    given = Segments(made, x, y, estimator=way.estimator, samples=way.samples(m), members=members)
    way.paradigm.loss(given).mean().backward()
    return time.process_time() - begin, made.calls / B


def measured(every: list[Way], sizes: list[int], rounds: int, *, shared: bool) -> dict[str, list[tuple[float, float]]]:
    """The best round of each at each m."""
    made, found = model(), {way.name: [(np.inf, 0.0)] * len(sizes) for way in every}
    for place, m in enumerate(sizes):
        for _ in range(rounds + 1):
            for way in every:
                seconds, calls = step(made, way, m, shared)
                found[way.name][place] = min(found[way.name][place][0], seconds), calls
                made.zero_grad(set_to_none=True)
    return found


def rows(sizes: list[int], found: dict[str, list[tuple[float, float]]]) -> list[dict]:
    """With what the formula predicts from soft and LVML."""
    last, m = len(sizes) - 1, sizes[-1]
    f = found["soft"][last][0] / m
    g = max(0.0, found["lvml"][last][0] - found["soft"][last][0]) / m
    made = []
    for name, cells in found.items():
        seconds, calls = (np.array(one) for one in zip(*cells, strict=True))
        far = np.array(sizes) >= 100
        exponent = np.polyfit(np.log(np.array(sizes)[far]), np.log(seconds[far]), 1)[0]
        made.append({
            "name": name, "m": sizes, "seconds": seconds.tolist(), "calls": calls.tolist(),
            "exponent": float(exponent), "formula": formula(calls[-1], m),
            "ratio to soft": (seconds / [cell[0] for cell in found["soft"]]).tolist(),
            "predicted ratio": float((m * f + calls[-1] * g) / (m * f + g)),
        })  # fmt: skip
    return made


def formula(calls: float, m: int) -> str:
    """In the letters of docs/focus.md."""
    return "m·f + m·g" if calls == m else "m·f + g" if calls == 1 else f"m·f + {calls:.0f}·g"


def show(title: str, table: list[dict]) -> None:
    """As text."""
    sizes = table[0]["m"]
    print(title)
    print(f"{'':28}" + "".join(f"{f'm = {m:,}':>12}" for m in sizes) + "   time ∝   calls     to soft   formula")
    for row in table:
        cells = "".join(f"{1000 * one:9.1f} ms" for one in row["seconds"])
        ratio = f"{row['ratio to soft'][-1]:.2f} ({row['predicted ratio']:.2f})"
        grows, calls = f"m^{row['exponent']:.2f}", f"{row['calls'][-1]:,.0f}"
        print(f"  {row['name']:26}{cells}   {grows:6} {calls:>8} {ratio:>12}   {row['formula']}")


def main() -> None:
    """Both tables, and the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to m = 1,000, one round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes, rounds = ([10, 100, 1000], 1) if options.quick else ([10, 100, 1000, 10_000], 2)
    every = ways()
    few = [way for way in every if way.name in ("soft", "hard", "lvml") or way.name.startswith("auto")]
    different = rows(sizes, measured(every, sizes, rounds, shared=False))
    shared = rows(sizes, measured(few, sizes, rounds, shared=True))
    at = sizes.index(1000)
    ratios = {row["name"]: row["ratio to soft"][at] for row in different}
    ours = next(name for name in ratios if name.startswith("auto"))
    if options.json:
        data = {"all different": different, "pictures shared": shared, "ratio": ratios[ours], "goal": GOAL}
        print(json.dumps(data, indent=1))
        return
    print(f"batch {B}, one thread, K = {K}; to soft: measured (by the formula), at the largest m")
    show("all segments different", different)
    show(f"mosaics of {PICTURES:,} pictures, each read once", shared)
    print(f"at m = 1,000: {ours} / soft {ratios[ours]:.2f}   goal {GOAL:g}")


if __name__ == "__main__":
    main()

"""Character-level language models against nanoGPT's recipe for a CPU, taking turns step by step in one process.

    python benchmarks/language_model.py [--peer PATH] [--data FILE] [--seeds 5] [--parts sprint race equal full]
                                         [--chart FILE] [--json] [--quick]

PATH is a checkout of nanoGPT: its model and its optimizer are used as they are, in the loop that its training script
describes (4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, cosine from 1e-3 to 1e-4). Only its steps
are timed, nothing around them; of ours, everything is: the run folder, the looks at the attention, validations,
checkpoints. Losses are means over the same fixed windows that cover the held-out tenth of the text; those on the way
to the chart, over 512 of them.

- race: `nanogpt_cpu` as it comes (architecture `modern`, tracking on), which takes about as long as nanoGPT's recipe
- sprint: the same with 210 steps: does it reach nanoGPT's final loss in a third of its time?
- equal: `classic` (nanoGPT's network and recipe in our engine) beside nanoGPT, so many seeds
- full: the published size; seconds per step, and the hours its 5,000 steps would take here

Generation at full size is in benchmarks/generation.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from generation import nanogpt_module

from neural.experiments import best_model, made, new_run
from neural.tasks.language_model import LanguageModel, LanguageModelSettings
from neural.training.engine import fit

GOALS = {
    "seconds to nanoGPT's loss / its seconds": 0.333, "loss after the same seconds": 1.65,
    "step of classic / step of nanoGPT": 1.0,
}  # fmt: skip
STEPS, BATCH, WARM_UP, PEAK, END = 2000, 12, 100, 1e-3, 1e-4
SPRINT = 210


class Theirs:
    """nanoGPT learning by its own recipe, a step at a time; `seconds` are those of its steps alone."""

    def __init__(self, peer: Path, task: LanguageModel, seed: int, steps: int = STEPS) -> None:
        module = nanogpt_module(peer)
        torch.manual_seed(1337 + seed)
        sizes = {"block_size": 64, "vocab_size": 65, "n_layer": 4, "n_head": 4, "n_embd": 128}
        self.model = module.GPT(module.GPTConfig(**sizes, dropout=0.0, bias=False))
        self.optimizer = self.model.configure_optimizers(0.1, PEAK, (0.9, 0.99), "cpu")
        windows = task.windows
        self.text = torch.from_numpy(windows.table[windows.ids[: windows.end]])
        self.task, self.steps, self.step, self.seconds = task, steps, 0, 0.0
        self.random = torch.Generator().manual_seed(seed)
        self.curve: list[tuple[float, float]] = []

    def learn(self) -> None:
        """One step."""
        started = time.perf_counter()
        at = torch.randint(len(self.text) - 64, (BATCH,), generator=self.random)
        x = torch.stack([self.text[one : one + 64] for one in at])
        y = torch.stack([self.text[one + 1 : one + 65] for one in at])
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        _, loss = self.model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()   # their script prints it at every step
        self.step += 1
        self.seconds += time.perf_counter() - started
        if self.step % 100 == 0:
            self.curve.append((self.seconds, self.judged(self.task)))

    def rate(self) -> float:
        """Up in a straight line, down along a cosine."""
        if self.step < WARM_UP:
            return PEAK * (self.step + 1) / (WARM_UP + 1)
        done = (self.step - WARM_UP) / (self.steps - WARM_UP)
        return END + 0.5 * (1 + math.cos(math.pi * done)) * (PEAK - END)

    def judged(self, task: LanguageModel) -> float:
        """The loss on the task's windows."""
        self.model.eval()
        loss = judged(Scores(self.model), task)
        self.model.train()
        return loss


class Scores(torch.nn.Module):
    """nanoGPT with the face that our tasks know: `scores` at every place."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """Given targets, it computes all places and not the last alone."""
        return self.model(x, x)[0]


def judged(model: torch.nn.Module, task: LanguageModel) -> float:
    """The loss on the task's windows."""
    with torch.no_grad():
        return task.evaluate(model)["valid/loss"]


class Ours:
    """A run of ours that lets another learn between its steps, and counts its own seconds only."""

    def __init__(self, task: LanguageModel, folder: Path, between: Callable[[float], None]) -> None:
        self.away, self.between = 0.0, between
        self.curve: list[tuple[float, float]] = []
        self.started = time.perf_counter()
        run = new_run(task, folder)
        fit(task, run, tell=self.turn)
        self.seconds = time.perf_counter() - self.started - self.away
        self.model = best_model(run.path)

    def turn(self, progress) -> None:
        """After each step."""
        left = time.perf_counter()
        seconds = left - self.started - self.away
        if progress.scores:
            self.curve.append((seconds, progress.scores["valid/loss"]))
        self.between(seconds)
        self.away += time.perf_counter() - left


def task_of(data: str, folder: Path, architecture="modern", preset="nanogpt_cpu", **said) -> LanguageModel:
    """The preset as it comes, but for what is said."""
    settings = {"data": data, "preset": preset, "architecture": architecture, **said}
    task = made(LanguageModelSettings.model_validate(settings), folder)
    assert isinstance(task, LanguageModel)
    return task


def race(peer: Path, data: str, folder: Path, steps: int | None, whole: int, share: float) -> dict:
    """Ours beside nanoGPT's recipe, which learns for `share` seconds to each of ours."""
    length = {"steps": steps} if steps else {}
    every = steps // 2 if steps else 72
    task = task_of(data, folder, training={**length, "validate_every": every}, tracking={"track_every": 50})
    judge = task_of(data, folder, validation_windows=0)
    theirs = Theirs(peer, task, 0, whole)

    def between(seconds: float) -> None:
        while theirs.seconds < share * seconds and theirs.step < theirs.steps:
            theirs.learn()

    ours = Ours(task, folder / "runs", between)
    while theirs.step < theirs.steps:
        theirs.learn()
    return {
        "ours": {"seconds": ours.seconds, "loss": judged(ours.model, judge), "curve": ours.curve},
        "nanoGPT": {"seconds": theirs.seconds, "loss": theirs.judged(judge), "curve": theirs.curve},
    }  # fmt: skip


def equal(peer: Path, data: str, folder: Path, seeds: int, steps: int) -> dict:
    """`classic` in our engine beside nanoGPT, one step each in turn."""
    found: dict[str, list[float]] = {"ours": [], "nanoGPT": [], "ratio": []}
    judge = task_of(data, folder, validation_windows=0)
    for seed in range(seeds):
        training = {"steps": steps, "validate_every": steps, "seed": seed}
        task = task_of(data, folder, "classic", training=training, tracking={"track_every": 0})
        theirs = Theirs(peer, task, seed, steps)
        ends: list[float] = []

        def between(seconds: float, theirs=theirs, ends=ends) -> None:
            ends.append(seconds)
            theirs.learn()

        ours = Ours(task, folder / "runs", between)
        found["ours"].append(judged(ours.model, judge))
        found["nanoGPT"].append(theirs.judged(judge))
        own = (ends[-2] - ends[0]) / (len(ends) - 2)   # after the last step come validation and checkpoint
        found["ratio"].append(own / (theirs.seconds / theirs.step))
    return found


def full(data: str, folder: Path, quick: bool) -> dict:
    """Seconds per step of the published size, and what its 5,000 steps take."""
    found = {}
    for architecture in ("classic", "modern"):
        steps = 3 if quick else 6
        task = task_of(
            data, folder, architecture, "full", tracking={"track_every": 0},
            training={"steps": steps, "validate_every": steps}, validation_windows=1,
        )  # fmt: skip
        ends: list[float] = []
        Ours(task, folder / "runs", ends.append)
        each = (ends[-2] - ends[0]) / (len(ends) - 2)
        usual = task_of(data, folder, architecture, "full").experiment.training
        found[architecture] = {"seconds per step": each, "batch": usual.batch_size, "hours": each * usual.steps / 3600}
    return found


def measure(peer: Path, data: str, seeds: int, parts: list[str], quick: bool) -> dict:
    """The parts that are asked for, and what follows from them."""
    steps = 60 if quick else STEPS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways: dict[str, Callable[[], dict]] = {
            "sprint": lambda: race(peer, data, folder, 10 if quick else SPRINT, steps, 3.0),
            "race": lambda: race(peer, data, folder, 20 if quick else None, steps, 1.0),
            "equal": lambda: equal(peer, data, folder, seeds, steps),
            "full": lambda: full(data, folder, quick),
        }  # fmt: skip
        found = {part: ways[part]() for part in parts}
    return {"threads": torch.get_num_threads(), **found, "ratios": ratios(found)}


def ratios(found: dict) -> dict[str, float]:
    """What goals are set for."""
    told = {}
    if "sprint" in found:
        ours, theirs = found["sprint"]["ours"], found["sprint"]["nanoGPT"]
        share = ours["seconds"] / theirs["seconds"] if ours["loss"] <= theirs["loss"] else math.inf
        told["seconds to nanoGPT's loss / its seconds"] = share
    if "race" in found:
        ours, theirs = found["race"]["ours"], found["race"]["nanoGPT"]
        told["loss after the same seconds"] = ours["loss"]
        told["race: our seconds / nanoGPT's"] = ours["seconds"] / theirs["seconds"]
    if "equal" in found:
        told["step of classic / step of nanoGPT"] = statistics.median(found["equal"]["ratio"])
    return told


def draw(found: dict, path: Path) -> None:
    """Loss against seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, colour in (("race", "tab:blue"), ("sprint", "tab:green")):
        if name not in found:
            continue
        axes.plot(*zip(*found[name]["ours"]["curve"], strict=True), ".-", color=colour, label=f"neural, {name}")
    theirs = (found.get("race") or found["sprint"])["nanoGPT"]
    axes.plot(*zip(*theirs["curve"], strict=True), ".-", color="tab:grey", label="nanoGPT")
    axes.axhline(theirs["loss"], color="tab:grey", lw=0.8, ls=":")
    axes.set(xlabel="seconds of its own", ylabel="validation loss, nats per character", ylim=(None, 2.8))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="a checkout of nanoGPT; without it, `full` alone")
    parser.add_argument("--data", type=Path, help="shakespeare_char.txt; by default from NEURAL_DATA")
    parser.add_argument("--seeds", type=int, default=5, help="of `equal`")
    parts = ["sprint", "race", "equal", "full"]
    parser.add_argument("--parts", nargs="+", choices=parts, help="all if not said")
    parser.add_argument("--chart", type=Path, help="draw loss against seconds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few steps: does it run?")
    options = parser.parse_args()
    chosen = options.parts or (parts if options.peer else ["full"])
    if not options.peer and chosen != ["full"]:
        parser.error("these parts need nanoGPT beside them: --peer PATH")
    data = options.data or Path(os.environ.get("NEURAL_DATA", ".")) / "shakespeare_char.txt"
    text = str(data.resolve()) if data.exists() else "handbook" if chosen == ["full"] else "shakespeare_char"
    found = measure(options.peer, text, 1 if options.quick else options.seeds, chosen, options.quick)
    if options.chart:
        draw(found, options.chart)
    print(json.dumps(found | {"goals": GOALS}, indent=2) if options.json else table(found))


def table(found: dict) -> str:
    """For people."""
    lines = [f"shakespeare_char, 4 layers, 4 heads, width 128, context 64; {found['threads']} threads", ""]
    for name in ("sprint", "race"):
        for who, one in found.get(name, {}).items():
            lines.append(f"  {name:7} {who:8} {one['seconds']:7.1f} s   loss {one['loss']:.4f}")
    for who in ("ours", "nanoGPT") if "equal" in found else ():
        values = found["equal"][who]
        spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
        each = " ".join(f"{one:.4f}" for one in values)
        lines.append(f"  classic, loss: {who:8} {statistics.mean(values):.4f}{spread}   {each}")
    for name, one in found.get("full", {}).items():
        each = f"{one['seconds per step']:.2f} s per step of {one['batch']} windows"
        lines.append(f"  full size, {name:8} {each}, {one['hours']:.1f} hours in all")
    lines.append("")
    for name, value in found["ratios"].items():
        lines.append(f"  {name:42} {value:7.3f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))
    return "\n".join(lines)


if __name__ == "__main__":
    main()

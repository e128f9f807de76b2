"""Character-level language models against nanoGPT's recipe for a CPU, step by step in one process.

    python benchmarks/language_model.py [--peer PATH] [--data FILE] [--seeds 5]
                                        [--parts sprint race equal full] [--chart FILE] [--json]
                                        [--quick]

PATH is a checkout of nanoGPT: its model and its optimizer are used unchanged, in the loop of its
training script (4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, cosine from 1e-3
to 1e-4). Of nanoGPT only the steps are timed; of ours everything: the run folder, snapshots of
attention, validations, checkpoints. Losses are means over the same fixed windows, which cover the
held-out tenth of the text; those in the chart, over 512 of them.

- race: the preset `nanogpt_cpu` (architecture `modern`, tracking on), about as long as nanoGPT's
  recipe
- sprint: the same with 210 steps: does it reach nanoGPT's final loss in a third of its time?
- equal: `classic` (nanoGPT's network and recipe in our engine) beside nanoGPT, with several seeds
- full: the published size; seconds per step, and the hours of its 5,000 steps on this machine

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
from generation import import_nanogpt

from neural.tasks.language_model.task import LanguageModel, LanguageModelSettings
from neural.training.engine import fit
from neural.training.load_model import load_best_model
from neural.training.load_task import create_task
from neural.workflows.train import create_run

GOALS = {
    "seconds to nanoGPT's loss / its seconds": 0.333,
    "loss after the same seconds": 1.65,
    "step of classic / step of nanoGPT": 1.0,
}
STEPS, BATCH_SIZE, WARMUP_STEPS = 2000, 12, 100
MAX_LEARNING_RATE, MIN_LEARNING_RATE = 1e-3, 1e-4
SPRINT_STEPS = 210


class NanoGPTTraining:
    """nanoGPT trained by its own recipe, step by step; `seconds` counts its steps only."""

    def __init__(self, peer: Path, task: LanguageModel, seed: int, steps: int = STEPS) -> None:
        module = import_nanogpt(peer)
        torch.manual_seed(1337 + seed)
        sizes = {"block_size": 64, "vocab_size": 65, "n_layer": 4, "n_head": 4, "n_embd": 128}
        self.model = module.GPT(module.GPTConfig(**sizes, dropout=0.0, bias=False))
        self.optimizer = self.model.configure_optimizers(0.1, MAX_LEARNING_RATE, (0.9, 0.99), "cpu")
        windows = task.windows
        self.text = torch.from_numpy(windows.id_table[windows.ids[: windows.train_end]])
        self.task, self.steps, self.step, self.seconds = task, steps, 0, 0.0
        self.random = torch.Generator().manual_seed(seed)
        self.curve: list[tuple[float, float]] = []

    def train_step(self) -> None:
        """One optimizer step."""
        start_time = time.perf_counter()
        starts = torch.randint(len(self.text) - 64, (BATCH_SIZE,), generator=self.random)
        x = torch.stack([self.text[start : start + 64] for start in starts])
        y = torch.stack([self.text[start + 1 : start + 65] for start in starts])
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        _, loss = self.model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()  # nanoGPT's script prints it at every step
        self.step += 1
        self.seconds += time.perf_counter() - start_time
        if self.step % 100 == 0:
            self.curve.append((self.seconds, self.validate(self.task)))

    def learning_rate(self) -> float:
        """Linear warm-up, then cosine decay."""
        if self.step < WARMUP_STEPS:
            return MAX_LEARNING_RATE * (self.step + 1) / (WARMUP_STEPS + 1)
        progress = (self.step - WARMUP_STEPS) / (self.steps - WARMUP_STEPS)
        decay = 0.5 * (1 + math.cos(math.pi * progress))
        return MIN_LEARNING_RATE + decay * (MAX_LEARNING_RATE - MIN_LEARNING_RATE)

    def validate(self, task: LanguageModel) -> float:
        """The loss on the task's validation windows."""
        self.model.eval()
        loss = validation_loss(NanoGPTScores(self.model), task)
        self.model.train()
        return loss


class NanoGPTScores(torch.nn.Module):
    """nanoGPT with the interface of our networks: `logits` at every position."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of all positions; without targets, nanoGPT computes the last one only."""
        return self.model(x, x)[0]


def validation_loss(model: torch.nn.Module, task: LanguageModel) -> float:
    """The loss on the task's validation windows."""
    with torch.no_grad():
        return task.evaluate(model)["valid/loss"]


class OurTraining:
    """A training of ours that calls a function between its steps, and counts its own time only."""

    def __init__(self, task: LanguageModel, folder: Path, between: Callable[[float], None]) -> None:
        self.paused_seconds, self.between = 0.0, between
        self.curve: list[tuple[float, float]] = []
        self.start_time = time.perf_counter()
        run = create_run(task, folder)
        fit(task, run, on_step=self.on_step)
        self.seconds = time.perf_counter() - self.start_time - self.paused_seconds
        self.model = load_best_model(run.path)

    def on_step(self, progress) -> None:
        """Record the validation loss, and call the function."""
        pause_start = time.perf_counter()
        seconds = pause_start - self.start_time - self.paused_seconds
        if progress.scores:
            self.curve.append((seconds, progress.scores["valid/loss"]))
        self.between(seconds)
        self.paused_seconds += time.perf_counter() - pause_start


def create_preset_task(
    data: str, folder: Path, architecture="modern", preset="nanogpt_cpu", **overrides
) -> LanguageModel:
    """The task of a preset with some settings overridden."""
    settings = {"data": data, "preset": preset, "architecture": architecture, **overrides}
    task = create_task(LanguageModelSettings.model_validate(settings), folder)
    assert isinstance(task, LanguageModel)
    return task


def race(
    peer: Path, data: str, folder: Path, steps: int | None, nanogpt_steps: int, ratio: float
) -> dict:
    """Our training beside nanoGPT's recipe, which gets `ratio` seconds per second of ours."""
    training = {"validate_every": steps // 2 if steps else 72}
    training |= {"steps": steps} if steps else {}
    task = create_preset_task(data, folder, training=training, tracking={"track_every": 50})
    full_task = create_preset_task(data, folder, validation_windows=0)
    nanogpt = NanoGPTTraining(peer, task, 0, nanogpt_steps)

    def train_nanogpt(seconds: float) -> None:
        while nanogpt.seconds < ratio * seconds and nanogpt.step < nanogpt.steps:
            nanogpt.train_step()

    ours = OurTraining(task, folder / "runs", train_nanogpt)
    while nanogpt.step < nanogpt.steps:
        nanogpt.train_step()
    return {
        "ours": {
            "seconds": ours.seconds,
            "loss": validation_loss(ours.model, full_task),
            "curve": ours.curve,
        },
        "nanoGPT": {
            "seconds": nanogpt.seconds,
            "loss": nanogpt.validate(full_task),
            "curve": nanogpt.curve,
        },
    }


def equal(peer: Path, data: str, folder: Path, seeds: int, steps: int) -> dict:
    """`classic` in our engine beside nanoGPT; they alternate step by step."""
    results: dict[str, list[float]] = {"ours": [], "nanoGPT": [], "ratio": []}
    full_task = create_preset_task(data, folder, validation_windows=0)
    for seed in range(seeds):
        training = {"steps": steps, "validate_every": steps, "seed": seed}
        task = create_preset_task(
            data, folder, "classic", training=training, tracking={"track_every": 0}
        )
        nanogpt = NanoGPTTraining(peer, task, seed, steps)
        ends: list[float] = []

        def train_nanogpt(seconds: float, nanogpt=nanogpt, ends=ends) -> None:
            ends.append(seconds)
            nanogpt.train_step()

        ours = OurTraining(task, folder / "runs", train_nanogpt)
        results["ours"].append(validation_loss(ours.model, full_task))
        results["nanoGPT"].append(nanogpt.validate(full_task))
        # after the last step come validation and checkpoint
        seconds_per_step = (ends[-2] - ends[0]) / (len(ends) - 2)
        results["ratio"].append(seconds_per_step / (nanogpt.seconds / nanogpt.step))
    return results


def full(data: str, folder: Path, quick: bool) -> dict:
    """Seconds per step of the published size, and the hours of its 5,000 steps."""
    results = {}
    for architecture in ("classic", "modern"):
        steps = 3 if quick else 6
        task = create_preset_task(
            data,
            folder,
            architecture,
            "full",
            tracking={"track_every": 0},
            training={"steps": steps, "validate_every": steps},
            validation_windows=1,
        )
        ends: list[float] = []
        OurTraining(task, folder / "runs", ends.append)
        seconds_per_step = (ends[-2] - ends[0]) / (len(ends) - 2)
        preset = create_preset_task(data, folder, architecture, "full").experiment.training
        results[architecture] = {
            "seconds per step": seconds_per_step,
            "batch": preset.batch_size,
            "hours": seconds_per_step * preset.steps / 3600,
        }
    return results


def measure(peer: Path, data: str, seeds: int, parts: list[str], quick: bool) -> dict:
    """Run the selected parts, and compute the ratios that have goals."""
    steps = 60 if quick else STEPS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        functions: dict[str, Callable[[], dict]] = {
            "sprint": lambda: race(peer, data, folder, 10 if quick else SPRINT_STEPS, steps, 3.0),
            "race": lambda: race(peer, data, folder, 20 if quick else None, steps, 1.0),
            "equal": lambda: equal(peer, data, folder, seeds, steps),
            "full": lambda: full(data, folder, quick),
        }
        results = {part: functions[part]() for part in parts}
    return {"threads": torch.get_num_threads(), **results, "ratios": compute_ratios(results)}


def compute_ratios(results: dict) -> dict[str, float]:
    """The ratios that have goals."""
    ratios = {}
    if "sprint" in results:
        ours, nanogpt = results["sprint"]["ours"], results["sprint"]["nanoGPT"]
        reached = ours["loss"] <= nanogpt["loss"]
        ratio = ours["seconds"] / nanogpt["seconds"] if reached else math.inf
        ratios["seconds to nanoGPT's loss / its seconds"] = ratio
    if "race" in results:
        ours, nanogpt = results["race"]["ours"], results["race"]["nanoGPT"]
        ratios["loss after the same seconds"] = ours["loss"]
        ratios["race: our seconds / nanoGPT's"] = ours["seconds"] / nanogpt["seconds"]
    if "equal" in results:
        ratios["step of classic / step of nanoGPT"] = statistics.median(results["equal"]["ratio"])
    return ratios


def draw_chart(results: dict, path: Path) -> None:
    """Plot loss against seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, colour in (("race", "tab:blue"), ("sprint", "tab:green")):
        if name not in results:
            continue
        axes.plot(
            *zip(*results[name]["ours"]["curve"], strict=True),
            ".-",
            color=colour,
            label=f"neural, {name}",
        )
    nanogpt = (results.get("race") or results["sprint"])["nanoGPT"]
    axes.plot(*zip(*nanogpt["curve"], strict=True), ".-", color="tab:grey", label="nanoGPT")
    axes.axhline(nanogpt["loss"], color="tab:grey", lw=0.8, ls=":")
    axes.set(
        xlabel="seconds of training", ylabel="validation loss, nats per character", ylim=(None, 2.8)
    )
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a checkout of nanoGPT; without it, only `full`")
    parser.add_argument(
        "--data", type=Path, help="shakespeare_char.txt; by default from NEURAL_DATA"
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds of `equal`")
    parts = ["sprint", "race", "equal", "full"]
    parser.add_argument("--parts", nargs="+", choices=parts, help="all by default")
    parser.add_argument("--chart", type=Path, help="file for a chart of loss against seconds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few steps: does it run?")
    options = parser.parse_args()
    selected = options.parts or (parts if options.peer else ["full"])
    if not options.peer and selected != ["full"]:
        parser.error("these parts need nanoGPT: --peer PATH")
    data = options.data or Path(os.environ.get("NEURAL_DATA", ".")) / "shakespeare_char.txt"
    text = (
        str(data.resolve())
        if data.exists()
        else "handbook"
        if selected == ["full"]
        else "shakespeare_char"
    )
    results = measure(
        options.peer, text, 1 if options.quick else options.seeds, selected, options.quick
    )
    if options.chart:
        draw_chart(results, options.chart)
    print(
        json.dumps(results | {"goals": GOALS}, indent=2) if options.json else format_table(results)
    )


def format_table(results: dict) -> str:
    """The results as text."""
    lines = [
        f"shakespeare_char, 4 layers, 4 heads, width 128, context 64; {results['threads']} threads",
        "",
    ]
    for name in ("sprint", "race"):
        for model, figures in results.get(name, {}).items():
            seconds, loss = figures["seconds"], figures["loss"]
            lines.append(f"  {name:7} {model:8} {seconds:7.1f} s   loss {loss:.4f}")
    for model in ("ours", "nanoGPT") if "equal" in results else ():
        losses = results["equal"][model]
        std = f" ± {statistics.stdev(losses):.4f}" if len(losses) > 1 else ""
        per_seed = " ".join(f"{loss:.4f}" for loss in losses)
        lines.append(f"  classic, loss: {model:8} {statistics.mean(losses):.4f}{std}   {per_seed}")
    for name, figures in results.get("full", {}).items():
        step = f"{figures['seconds per step']:.2f} s per step of {figures['batch']} windows"
        lines.append(f"  full size, {name:8} {step}, {figures['hours']:.1f} hours in total")
    lines.append("")
    for name, value in results["ratios"].items():
        lines.append(
            f"  {name:42} {value:7.3f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else "")
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Phase change of a trained induction model: do role and importance of heads find its step?

    python benchmarks/induction_phase.py [--json] [--quick] [--runs FOLDER] [--seeds 0 1 2 3 4]

Trains examples/induction once for each seed, each on a text of its own, and once on a text without
repetitions (the control). Runs that FOLDER has already are used again. All numbers are steps of
snapshots, which are checkpoints, too:

    truth       the end of the steepest fall of the loss on repeated symbols between two snapshots;
                none if that loss ends above half of the chance loss. Attention is not used
    role        since when the most important induction head has had its role (findings/head_roles.py)
    half        since when that head has had half of its last importance, or more
    necessary   since when it has been necessary (findings/head_necessity.py): the first signs

A step agrees with the truth if it is at most one snapshot away.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

sys.path.insert(0, str(Path(__file__).parents[1] / "examples/induction"))

from repeat_symbols import COPIES, generate_repeats

from neural.capture.token_classes import find_repeated_pairs
from neural.findings.head_necessity import HeadIndex, load_necessity, load_roles
from neural.findings.head_roles import format_head
from neural.runs.run import Run
from neural.stats.change_points import estimate_last_level, find_onset
from neural.training.load_model import load_weights
from neural.training.load_task import restore_task
from neural.workflows.ablate import ablate
from neural.workflows.train import TrainRequest, prepare_training, train

EXAMPLE = Path(__file__).parents[1] / "examples/induction"
GOALS = {"seeds whose role agrees": 5, "seeds whose half importance agrees": 5}
SEEDS = (0, 1, 2, 3, 4)
CONTROL_SEED = 0
TEXT_LENGTH = 1_000_000
EXAMPLES = 64
"""Held-out windows for the loss and for the importance."""


@dataclass(frozen=True)
class PhaseResult:
    """Steps of one run; None where there is none."""

    seed: int
    truth: int | None
    fall_share: float
    """Share of the total fall of the loss on repeated symbols that the steepest interval has."""
    head: str
    """The most important induction head; empty without one."""
    role: int | None
    half: int | None
    necessary: int | None
    previous_head: str
    """The most important head of the first layer."""
    previous_half: int | None
    first_loss: float
    """On repeated symbols, at the first snapshot; and at the last."""
    last_loss: float
    other_loss: float
    """On all other symbols, at the last snapshot."""
    necessary_heads: int
    """Heads that are necessary at the last snapshot."""
    snapshot: int
    """Steps between two snapshots."""
    train_seconds: float
    ablate_seconds: float

    def agrees(self, step: int | None) -> bool:
        """Whether a step is within one snapshot of the truth."""
        return (
            self.truth is not None and step is not None and abs(step - self.truth) <= self.snapshot
        )


def train_run(folder: Path, seed: int, copies: int) -> tuple[Path, float]:
    """The finished run of a seed in `folder`, trained if it is not there; seconds of training."""
    name = f"induction-{seed}" if copies > 1 else f"control-{seed}"
    finished = [
        path for path in folder.glob(f"*_{name}") if Run.open(path).status.state == "finished"
    ]
    if finished:
        return finished[-1], 0.0
    text = folder / f"{name}.txt"
    text.write_text(generate_repeats(TEXT_LENGTH, seed, copies), encoding="utf-8")
    start = time.perf_counter()
    overrides = (f'data="{text.absolute()}"', f"training.seed={seed}", f"name={name}")
    request = TrainRequest(str(EXAMPLE / "induction.yaml"), overrides, runs=str(folder))
    run, _ = train(prepare_training(request))
    assert run is not None
    return run.path, time.perf_counter() - start


def measure_losses(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Steps, losses on repeated and on other symbols at every checkpoint, and the chance loss."""
    run = Run.open(path)
    task = restore_task(run)
    batch = task.held_out_batch(EXAMPLES)
    is_repeated = find_repeated_pairs(batch["x"], batch["y"])
    model: Any = task.build().eval()
    rows = []
    for info in run.checkpoints():
        checkpoint = run.load_checkpoint(info.step)
        assert checkpoint is not None
        load_weights(model, checkpoint)
        with torch.no_grad():
            logits = model.logits(batch["x"])
        losses = cross_entropy(logits.transpose(1, 2), batch["y"], reduction="none")
        rows.append((info.step, losses[is_repeated].mean(), losses[~is_repeated].mean()))
    steps, repeated, other = np.array(rows, dtype=float).T
    return steps.astype(int), repeated, other, float(run.metadata("data/chance_loss"))


def find_phase_change(losses: np.ndarray, chance_loss: float) -> int | None:
    """Index of the snapshot after the steepest fall; None if the loss ends above half of chance."""
    if len(losses) < 2 or losses[-1] > chance_loss / 2:
        return None
    return int(np.argmin(np.diff(losses))) + 1


def find_half_step(steps: np.ndarray, change: np.ndarray) -> int | None:
    """The step since which a head has had half of its last importance; None if that is below 0."""
    last = estimate_last_level(change)
    index = find_onset(change, last / 2) if last > 0 else None
    return None if index is None else int(steps[index])


def measure_run(folder: Path, seed: int, copies: int) -> PhaseResult:
    """All numbers of the run of a seed."""
    path, train_seconds = train_run(folder, seed, copies)
    start = time.perf_counter()
    ablate(path, examples=EXAMPLES, over_training=True, pairs=False)
    ablate_seconds = time.perf_counter() - start
    steps, repeated, other, chance_loss = measure_losses(path)
    phase = find_phase_change(repeated, chance_loss)
    fall = repeated[0] - repeated[-1]
    run = Run.open(path)
    necessity = load_necessity(run)
    record = necessity.record

    def find_most_important(heads: list[HeadIndex]) -> HeadIndex | None:
        return max(heads, key=lambda head: record.change[-1, *head], default=None)

    roles = load_roles(run)
    induction = find_most_important([head for head in roles if roles[head].name == "induction"])
    previous = find_most_important(
        [head for head in necessity.list_necessary_heads() if not head[0]]
    )

    def find_half(head: HeadIndex | None) -> int | None:
        return find_half_step(record.steps, record.change[:, *head]) if head else None

    return PhaseResult(
        seed=seed,
        truth=None if phase is None else int(steps[phase]),
        fall_share=float((repeated[phase - 1] - repeated[phase]) / fall) if phase else 0.0,
        head=format_head(*induction) if induction else "",
        role=roles[induction].onset if induction else None,
        half=find_half(induction),
        necessary=necessity.find_onset_step(*induction) if induction else None,
        previous_head=format_head(*previous) if previous else "",
        previous_half=find_half(previous),
        first_loss=float(repeated[0]),
        last_loss=float(repeated[-1]),
        other_loss=float(other[-1]),
        necessary_heads=len(necessity.list_necessary_heads()),
        snapshot=int(np.diff(steps).max()),
        train_seconds=train_seconds,
        ablate_seconds=ablate_seconds,
    )


def format_row(label: str, result: PhaseResult) -> str:
    """A line of the table; a star marks steps that agree with the truth."""

    def mark(step: int | None) -> str:
        return "–" if step is None else f"{step}{'*' if result.agrees(step) else ' '}"

    return (
        f"{label:>8} {result.truth or '–':>6} {result.fall_share:6.2f}  {result.head:6}"
        f" {mark(result.role):>6} {mark(result.half):>6} {mark(result.necessary):>9}"
        f"  {result.previous_head:6} {mark(result.previous_half):>6}"
        f" {result.first_loss:6.2f} → {result.last_loss:4.2f} ({result.other_loss:4.2f} others)"
        f" {result.necessary_heads:3}"
        f" {result.train_seconds:5.0f} {result.ablate_seconds:5.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one seed, no control")
    parser.add_argument("--runs", type=Path, help="folder of the runs; a temporary one by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = list(options.seeds)[:1] if options.quick else list(options.seeds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not options.json:
            print(
                "    seed  truth  share  head     role   half necessary  layer 0   half"
                "   loss on repeated symbols    heads train ablate",
                flush=True,
            )
        results = []
        for seed in seeds:
            results.append(measure_run(folder, seed, copies=COPIES))
            if not options.json:
                print(format_row(str(seed), results[-1]), flush=True)
        control = None
        if not options.quick:
            control = measure_run(folder, CONTROL_SEED, copies=1)
            if not options.json:
                print(format_row("control", control))
    summary = {
        "seeds": len(results),
        "seeds whose role agrees": sum(result.agrees(result.role) for result in results),
        "seeds whose half importance agrees": sum(result.agrees(result.half) for result in results),
        "seeds whose first necessity agrees": sum(
            result.agrees(result.necessary) for result in results
        ),
    }
    if options.json:
        rows = {"runs": [asdict(result) for result in results]}
        saved_control = {"control": asdict(control)} if control else {}
        print(json.dumps({**summary, **rows, **saved_control, "goals": GOALS}, indent=1))
    else:
        for name, count in summary.items():
            print(f"{name}: {count}")


if __name__ == "__main__":
    main()

"""Cost of `neural.track` in loops of other people: a plain one, and the Trainer of Hugging Face.

    python benchmarks/tracking_any_loop.py [--json] [--quick]

A GPT-2 of 10 million parameters (6 layers, 6 heads, width 384) learns the help texts of CPython,
character by character: in a plain loop without and with `neural.track`, and in the Trainer without
and with `NeuralCallback`, with the same weights and batches. A snapshot every 50 steps has all
measures and maps of 4 texts as long as those of the training. The two trainings of a pair alternate
step by step in one process, so that both have the same noise. A snapshot's time is that of a step
with it minus that of the other steps of the same training; the figure is 1 + its share of 50 steps.
The losses must be equal bit for bit. With two threads it takes about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from tracking import CHARACTERS, TEXT, StepTurns

import neural
from neural.callbacks.huggingface import NeuralCallback

PROBE_EXAMPLES = 4
GOALS = {"plain loop, tracked / not": 1.02, "Trainer, tracked / not": 1.02}
IDS = torch.tensor([CHARACTERS.index(character) for character in TEXT[:200_000]])
OnStep = Callable[[int, float], None]


def build_model(sizes: argparse.Namespace) -> transformers.GPT2LMHeadModel:
    """GPT-2 of characters, without dropout: the trainings of a pair share the random generator."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(CHARACTERS),
        n_positions=sizes.length,
        n_embd=sizes.width,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    return transformers.GPT2LMHeadModel(config)


def cut_window(sizes: argparse.Namespace, index: int) -> torch.Tensor:
    """A piece of the text at a random position, (length,)."""
    generator = torch.Generator().manual_seed(index)
    start = int(torch.randint(0, len(IDS) - sizes.length, (), generator=generator))
    return IDS[start : start + sizes.length]


def build_probe(sizes: argparse.Namespace) -> torch.Tensor:
    """Texts that are not trained on, (PROBE_EXAMPLES, length)."""
    return torch.stack([cut_window(sizes, 10**9 + index) for index in range(PROBE_EXAMPLES)])


def train_plain(
    sizes: argparse.Namespace, folder: Path, on_step: OnStep, *, is_tracked: bool
) -> None:
    """A loop as users write it."""
    model = build_model(sizes).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tracker = None
    if is_tracked:
        tracker = neural.track(model, build_probe(sizes), every=sizes.every, run=folder / "run")
    for step in range(sizes.steps):
        first = step * sizes.batch
        ids = torch.stack([cut_window(sizes, first + index) for index in range(sizes.batch)])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if tracker is not None:
            tracker.step(loss=loss)
        on_step(step + 1, loss.item())
    if tracker is not None:
        tracker.close()


class Windows(torch.utils.data.IterableDataset):
    """The same pieces of the text in the same order, for the Trainer."""

    def __init__(self, sizes: argparse.Namespace) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for index in range(self.sizes.steps * self.sizes.batch):
            ids = cut_window(self.sizes, index)
            yield {"input_ids": ids, "labels": ids}


class LossTrainer(transformers.Trainer):
    """The Trainer; stores the loss of the latest step."""

    latest_loss = float("nan")

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """One forward and backward pass."""
        loss = super().training_step(*args, **kwargs)
        self.latest_loss = loss.item()
        return loss


class StepCallback(transformers.TrainerCallback):
    """Calls a function after every step, after the other callbacks."""

    def __init__(self, on_step: Callable[[int], None]) -> None:
        self.on_step = on_step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the step."""
        self.on_step(state.global_step)


def train_trainer(
    sizes: argparse.Namespace, folder: Path, on_step: OnStep, *, is_tracked: bool
) -> None:
    """The Trainer, with or without our callback."""
    callbacks: list[transformers.TrainerCallback] = []
    if is_tracked:
        probe = {"input_ids": build_probe(sizes)}
        callbacks.append(NeuralCallback(probe, every=sizes.every, run=folder / "run"))
    callbacks.append(StepCallback(lambda step: on_step(step, trainer.latest_loss)))
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=sizes.steps,
        per_device_train_batch_size=sizes.batch,
        logging_steps=sizes.every,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = LossTrainer(
        model=build_model(sizes),
        args=arguments,
        train_dataset=Windows(sizes),
        callbacks=callbacks,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()


LOOPS = {"plain loop": train_plain, "Trainer": train_trainer}


def measure_loop(loop: str, sizes: argparse.Namespace) -> dict[str, Any]:
    """Seconds per step without and with snapshots, the ratio, and whether the losses are equal."""
    turns, errors = StepTurns(["not tracked", "tracked"]), []

    def train(name: str, folder: Path) -> None:
        def on_step(step: int, loss: float) -> None:
            turns.on_step(name, SimpleNamespace(step=step, steps=sizes.steps, loss=loss))

        try:
            turns.wait(name)
            LOOPS[loop](sizes, folder, on_step, is_tracked=name == "tracked")
        except BaseException as error:
            errors.append(error)
            turns.end_turn()
            raise

    with tempfile.TemporaryDirectory() as folder:
        threads = [
            threading.Thread(target=train, args=(name, Path(folder) / name), daemon=True)
            for name in turns.names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not errors:
                thread.join(0.2)
    if errors:
        sys.exit(f"benchmark failed: {errors[0]!r}")
    without, tracked = (np.array(turns.seconds[name]) for name in turns.names)
    # A snapshot is compared with the other steps of the same training: the second training of a turn
    # is slightly faster than the first, by more than snapshots cost.
    due = np.arange(1, len(tracked) + 1) % sizes.every == 0
    other = ~due
    other[[0, -1]] = False  # the first step imports and compiles, the last one ends
    due[-1] = False
    step = float(np.median(tracked[other]))
    snapshot = float(np.median(tracked[due])) - step
    return {
        "milliseconds per step": 1000 * step,
        "milliseconds per step, not tracked": 1000 * float(np.median(without[1:-1])),
        "milliseconds per snapshot": 1000 * snapshot,
        "ratio": 1 + snapshot / (sizes.every * step),
        "snapshots": int(due.sum()),
        "losses are equal bit for bit": turns.losses["tracked"] == turns.losses["not tracked"],
    }


def measure(sizes: argparse.Namespace) -> dict[str, Any]:
    """Both loops."""
    loops = {loop: measure_loop(loop, sizes) for loop in LOOPS}
    return {
        "sizes": vars(sizes),
        "parameters": sum(param.numel() for param in build_model(sizes).parameters()),
        "threads": torch.get_num_threads(),
        "loops": loops,
        "ratios": {
            f"{loop}, tracked / not": figures.pop("ratio") for loop, figures in loops.items()
        },
    }


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small, a snapshot every 5 steps")
    options = parser.parse_args()
    full = {"steps": 130, "every": 50, "length": 128, "batch": 8}
    quick = {"steps": 13, "every": 5, "length": 32, "batch": 2}
    model = {"layers": 6, "heads": 6, "width": 384}
    small_model = {"layers": 2, "heads": 2, "width": 32}
    sizes = argparse.Namespace(**((quick | small_model) if options.quick else (full | model)))
    transformers.utils.logging.set_verbosity_error()
    results = measure(sizes)
    are_equal = all(loop["losses are equal bit for bit"] for loop in results["loops"].values())
    if options.json:
        print(json.dumps(results | {"goals": GOALS}, indent=2))
    else:
        millions = results["parameters"] / 1e6
        print(
            f"GPT-2 of {millions:.1f} M parameters, {vars(sizes)}; {results['threads']} threads\n"
        )
        for loop, figures in results["loops"].items():
            step, snapshot = (figures[f"milliseconds per {noun}"] for noun in ("step", "snapshot"))
            share = snapshot / (sizes.every * step)
            print(
                f"  {loop:12} {step:9.1f} ms per step, {snapshot:9.1f} ms per snapshot: "
                f"{share:.1%} of {sizes.every} steps"
            )
        for name, value in results["ratios"].items():
            print(f"  {name:40} {value:9.3f}   goal {GOALS[name]:g}")
        print(f"\n  losses are equal bit for bit: {are_equal}")
    if not are_equal:
        sys.exit("snapshots changed the training")


if __name__ == "__main__":
    main()

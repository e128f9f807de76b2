"""Which explanation of a prediction to trust: faithfulness of eight methods on three models.

    python benchmarks/faithfulness.py [--json] [--quick] [--write]

Three models are trained here, each in a minute or two on two cores:

- a language model of characters, the preset `tiny` (2 layers × 2 heads), on the text that comes
  with every Python; examples are windows of held-out text, 32 characters each;
- an induction model, 2 layers × 4 heads, on random symbols in blocks that occur twice; examples are
  predictions inside the second copy of blocks that it has not seen;
- a classifier, 2 encoder layers × 4 heads with a mean over time: which symbol follows the marker.

Every method explains the model's own most probable answer. Tokens are replaced in the order of its
scores (deletion), or all are replaced and return in that order (insertion). The figure is the gain
in mean log-probability over ten random orders, in nats: mean of deletion and insertion, with its 95 %
interval over independent examples. `random` is a control: its interval must contain 0. Differences
to the attention map are paired by example. Models are trained with one seed: the intervals say
nothing about other trainings.

`--write` puts the table into docs/attribution.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import neural
from neural.capture.faithfulness import draw_replacements, measure_faithfulness
from neural.data.sources.handbook import read_handbook
from neural.interpret.explanations import (
    METHODS,
    compute_log_probabilities,
    explain,
    score_variants,
)
from neural.interpret.subject import load_subject
from neural.stats.means import estimate_mean
from neural.tasks.language_model.presets import write_program

DOCUMENT = Path(__file__).parents[1] / "docs" / "attribution.md"
TABLE_START, TABLE_END = "<!-- faithfulness table -->", "<!-- end of faithfulness table -->"
EXAMPLES, QUICK_EXAMPLES = 64, 4
SYMBOLS, BLOCK = 40, 16
"""Vocabulary of the induction model, and length of a block."""
CLASSES, CLASSIFIER_LENGTH = 8, 16
WINDOW = 32
"""Characters before a prediction of the language model."""
Batches = Callable[[int], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class TrainedModel:
    """A trained model with held-out inputs."""

    name: str
    model: torch.nn.Module
    inputs: torch.Tensor
    """(N, T) token ids; the answer is predicted after the last one, or is a class."""
    score: float
    """Share of held-out answers that are right."""
    seconds: float


def train(
    model: torch.nn.Module, batches: Batches, steps: int, learning_rate: float
) -> torch.nn.Module:
    """AdamW with a linear decay of the learning rate; targets below 0 do not count."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * (1 - step / steps)
    )
    model.train()
    for step in range(steps):
        tokens, targets = batches(step)
        logits = model.logits(tokens)
        loss = cross_entropy(
            logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=-1
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def compute_accuracy(model: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Share of right answers at the last position, or of right classes."""
    with torch.no_grad():
        logits = model.logits(inputs)
    logits = logits[:, -1] if logits.ndim == 3 else logits
    return float((logits.argmax(-1) == targets).float().mean())


def train_language_model(examples: int, quick: bool) -> TrainedModel:
    """The preset `tiny` on the handbook's text."""
    start = time.monotonic()
    text = read_handbook()
    characters = sorted(set(text))
    index = {character: token for token, character in enumerate(characters)}
    ids = torch.tensor([index[character] for character in text])
    held_out_start = int(0.9 * len(ids))
    context = 64

    def batches(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(step)
        starts = torch.randint(0, held_out_start - context - 1, (16,), generator=generator)
        windows = ids[starts[:, None] + torch.arange(context + 1)]
        return windows[:, :-1], windows[:, 1:]

    torch.manual_seed(0)
    model = neural.parse(write_program("tiny", "classic", len(characters))).build()
    train(model, batches, 20 if quick else 1500, 2e-3)
    # windows that do not overlap, so that examples are independent
    count = min(examples, (len(ids) - held_out_start) // (WINDOW + 1))
    starts = np.linspace(held_out_start, len(ids) - WINDOW - 1, count).astype(int)
    windows = ids[torch.from_numpy(starts)[:, None] + torch.arange(WINDOW + 1)]
    score = compute_accuracy(model, windows[:, :-1], windows[:, -1])
    return TrainedModel("language model", model, windows[:, :-1], score, time.monotonic() - start)


def draw_repeats(count: int, seed: int) -> torch.Tensor:
    """Blocks of different symbols, each twice: (count, 2 · BLOCK)."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(count, SYMBOLS, generator=generator).argsort(-1)[:, :BLOCK]
    return order.repeat(1, 2)


def train_induction_model(examples: int, quick: bool) -> TrainedModel:
    """Two layers that continue a repeated block."""
    start = time.monotonic()

    def batches(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = draw_repeats(32, step)
        # random offsets and lengths: attention to a fixed distance must not be enough
        generator = torch.Generator().manual_seed(step)
        cut = int(torch.randint(0, BLOCK // 2, (), generator=generator))
        tokens = torch.cat([tokens[:, cut:BLOCK], tokens[:, BLOCK + cut :]], dim=1)
        return tokens[:, :-1], tokens[:, 1:]

    torch.manual_seed(0)
    model = neural.parse(
        f"""network Induction {{
  input: (64,)
  layers:
    Embedding(input_dim={SYMBOLS}, output_dim=64)
    TransformerDecoder(num_heads=4, d_model=64, dff=64, positional="rotary", final_norm=true) * 2
    Output({SYMBOLS}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}"""
    ).build()
    train(model, batches, 20 if quick else 2500, 3e-3)
    held_out = draw_repeats(examples, 1_000_000)
    position = BLOCK + BLOCK // 2
    inputs, targets = held_out[:, :position], held_out[:, position]
    score = compute_accuracy(model, inputs, targets)
    return TrainedModel("induction model", model, inputs, score, time.monotonic() - start)


def draw_marked(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random symbols with one marker, the last id; the class is the symbol after the marker."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, CLASSES, (count, CLASSIFIER_LENGTH), generator=generator)
    places = torch.randint(0, CLASSIFIER_LENGTH - 1, (count,), generator=generator)
    rows = torch.arange(count)
    tokens[rows, places] = CLASSES
    return tokens, tokens[rows, places + 1]


def train_classifier(examples: int, quick: bool) -> TrainedModel:
    """Two encoder layers and a mean over time."""
    start = time.monotonic()
    torch.manual_seed(0)
    model = neural.parse(
        f"""network Marked {{
  input: ({CLASSIFIER_LENGTH},)
  layers:
    Embedding(input_dim={CLASSES + 1}, output_dim=32)
    TransformerEncoder(num_heads=4, d_model=32, dff=64, positional="rotary", final_norm=true) * 2
    GlobalAveragePooling1D()
    Output({CLASSES}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}"""
    ).build()
    train(model, lambda step: draw_marked(64, step), 20 if quick else 1500, 2e-3)
    inputs, targets = draw_marked(examples, 1_000_000)
    score = compute_accuracy(model, inputs, targets)
    return TrainedModel("classifier", model, inputs, score, time.monotonic() - start)


def measure_model(trained: TrainedModel) -> dict[str, list[float]]:
    """Gain of every method, and of a random explanation, by example."""
    subject = load_subject(trained.model)
    gains: dict[str, list[float]] = {}
    pool = trained.inputs.flatten()
    for number, tokens in enumerate(trained.inputs):
        position = len(tokens) - 1
        with torch.no_grad():
            log_probabilities = compute_log_probabilities(subject, tokens[None], position)[0]
        answer = int(log_probabilities.argmax())
        generator = torch.Generator().manual_seed(number)
        # "ablation" finds its scores with other tokens than those that judge all methods
        own_draws = draw_replacements(pool, tokens, 4, generator)
        judging_draws = draw_replacements(pool, tokens, 2, generator)
        scores = explain(subject, tokens, position=position, answer=answer, replacements=own_draws)
        scores["random"] = np.random.default_rng(1_000_000 + number).random(len(tokens))
        result = measure_faithfulness(
            lambda variants, position=position, answer=answer: score_variants(
                subject, variants, position, answer
            ),
            tokens,
            scores,
            judging_draws,
            seed=number,
        )
        for name in scores:
            gains.setdefault(name, []).append(result.gain(name))
    return gains


def summarize(gains: dict[str, list[float]]) -> dict[str, Any]:
    """Mean gain, its interval, and the paired difference to the attention map, by method."""
    rows = {}
    for name, values in gains.items():
        estimate = estimate_mean(values)
        difference = estimate_mean(np.subtract(values, gains["attention"]))
        rows[name] = {
            "gain": estimate.value,
            "interval": [estimate.low, estimate.high],
            "difference": difference.value,
            "difference_interval": [difference.low, difference.high],
        }
    return rows


def format_table(results: dict[str, Any]) -> Iterator[str]:
    """The table in Markdown: a row per method, a column per model."""
    yield "| method | " + " | ".join(results) + " |"
    yield "|---|" + "---|" * len(results)
    names = next(iter(results.values()))["methods"]
    for name in names:
        cells = []
        for model in results.values():
            row = model["methods"][name]
            low, high = row["interval"]
            cells.append(f"{row['gain']:.2f} ({low:.2f} … {high:.2f})".replace("-", "−"))
        yield f"| {METHODS.get(name, name)} | " + " | ".join(cells) + " |"


def format_differences(results: dict[str, Any]) -> Iterator[str]:
    """Which methods are better or worse than the attention map, by model."""
    for model_name, model in results.items():
        better, worse = [], []
        for name, row in model["methods"].items():
            low, high = row["difference_interval"]
            label = METHODS.get(name, name)
            if name in ("attention", "random") or not np.isfinite(low):
                continue
            if low > 0:
                better.append(f"{label} +{row['difference']:.2f}")
            elif high < 0:
                worse.append(f"{label} −{abs(row['difference']):.2f}")
        yield (
            f"- {model_name}: better than the attention map of the last layer (95 %, paired): "
            f"{', '.join(better) or 'none'}; worse: {', '.join(worse) or 'none'}."
        )


def write_document(lines: list[str]) -> None:
    """Replace the table of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(TABLE_START)
    _, _, after = rest.partition(TABLE_END)
    body = "\n".join(lines)
    content = f"{before}{TABLE_START}\n\n{body}\n\n{TABLE_END}{after}"
    DOCUMENT.write_text(content, encoding="utf-8")


def main() -> int:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    options = parser.parse_args()
    examples = QUICK_EXAMPLES if options.quick else EXAMPLES
    results: dict[str, Any] = {}
    for build in (train_language_model, train_induction_model, train_classifier):
        trained = build(examples, options.quick)
        gains = measure_model(trained)
        results[trained.name] = {
            "examples": len(trained.inputs),
            "accuracy": trained.score,
            "train_seconds": trained.seconds,
            "methods": summarize(gains),
            "gains": gains,
        }
        if not options.json:
            print(
                f"{trained.name}: {len(trained.inputs)} examples, {trained.score:.0%} of answers "
                f"right, trained in {trained.seconds:.0f} s",
                flush=True,
            )
    lines = [*format_table(results), "", *format_differences(results)]
    print(json.dumps(results, indent=1) if options.json else "\n".join(["", *lines]))
    if options.write:
        write_document(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Export random networks to every format and compare the files with the networks.

    python tests/exports/random_networks.py --count 300

Programs are sampled from all layers, mechanisms and positions, with two mechanisms of a user whose
helpers have names of ours. Every file is read back and run at lengths that the export itself did
not try: odd ones, sources and targets of different lengths, masks with padding anywhere.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, `tests` is not importable

import torch

import neural
from neural.exports import registry
from neural.language.check import check
from neural.nn.attention import registry as attention
from neural.nn.source_export.symbols import SourceExportError
from neural.optim.catalogue import CATALOGUE
from neural.workflows.compile import compile_network, import_network
from neural.workflows.export import export
from neural.workflows.export_bundle import ExportBundle, ExportError, create_bundle, max_difference
from tests.exports.networks import build_perturbed
from tests.exports.user_attentions.fading import Fading
from tests.exports.user_attentions.sharpened import Sharpened
from tests.language.strategies import CallWriter, build_sample

TOLERANCE = 1e-4
FORMATS = ("compiled", "torch", "onnx", "keras", "huggingface")
MAX_TRIALS = 4
"""Shapes at which each export is compared."""
LENGTHS = (1, 2, 3, 5, 7, 9, 12, 13)
POSITIONS = (
    "sinusoidal()",
    "learned(max_len=80)",
    "rotary()",
    "alibi()",
    "relative(buckets=8, max_distance=16)",
    "none()",
)
OPTIONS = (
    "num_kv_heads=1",
    "qk_norm=true",
    'norm="post"',
    'normalization="rms"',
    "bias=false",
    'activation="gelu"',
    "final_norm=true",
    "dropout_rate=0.1",
)
WINDOWS = (
    'Conv1D(6, padding="same")',
    "Conv1D(5, kernel_size=2, strides=2)",
    "MaxPooling1D(2)",
    'MaxPooling1D(3, strides=2, padding="same")',
)
"""Layers between encoder and decoder that change the mask of the source."""
TAILS = (
    'Residual(MultiHeadAttention(num_heads=1, attention="topk", k=3))',
    "GRU(5)",
    *WINDOWS,
    "GlobalAveragePooling1D()",
    "LSTM(4, bidirectional=true, return_sequences=false)",
)


@dataclass(frozen=True)
class Result:
    """The result of one network in one format."""

    network: int
    format: str
    status: str
    """"agrees", "refused", "wrong" or "crash"."""
    message: str = ""
    difference: float = 0.0
    too_short: int = 0
    """Lengths that the file refuses with a message, shorter than any that the export tried."""


@contextmanager
def user_attentions() -> Iterator[None]:
    """Register the mechanisms of a user inside the block."""
    previous = dict(attention._added)
    for mechanism in (Sharpened, Fading):
        attention.add(mechanism)
    try:
        yield
    finally:
        attention._added = previous


def random_program(random: Random, number: int) -> str:
    """A valid program of any layers; every third one of transformer blocks."""
    if number % 3:
        return build_sample(random).text
    while True:
        text = attention_program(random, number // 3)
        if not check(text, CATALOGUE).errors:
            return text


def attention_program(random: Random, number: int) -> str:
    """Transformer blocks of one sequence or two; the number selects mechanism and position."""
    names = attention.names()
    cross_names = [name for name in names if not attention.get(name).self_attention_only]
    width = random.choice([4, 8, 12])
    position = POSITIONS[number % len(POSITIONS)]

    def write_block(kind: str, *extra_options: str) -> str:
        mechanism = CallWriter(random, width).call(attention, names[number % len(names)])
        options = [
            f"num_heads={random.choice([1, 2, 4])}",
            f"attention={mechanism}",
            *extra_options,
        ]
        options += [f"positional={position}"] if random.random() < 0.8 else []
        options += random.sample(OPTIONS, random.randint(0, 3))
        copies = random.choice(["", "", " * 2"])
        return f"Transformer{kind}({', '.join(options)}){copies}"

    has_ids, has_target = random.random() < 0.5, random.random() < 0.5
    layers = [f"Embedding(11, {width}{random.choice(['', ', pad_id=0'])})"] if has_ids else []
    layers.append(write_block("Encoder" if has_target or random.random() < 0.5 else "Decoder"))
    if has_target:
        cross = CallWriter(random, width).call(attention, random.choice(cross_names))
        cross_options = [f"cross_attention={cross}"] if random.random() < 0.7 else []
        layers += [random.choice(WINDOWS)] if random.random() < 0.4 else []
        layers.append(write_block("Decoder", *cross_options))
    layers += random.sample(TAILS, random.randint(0, 2))
    size = "(None,)" if has_ids else f"(None, {width})"
    lines = "\n    ".join(layers)
    return f"network Sample {{\n  input: {size}\n  layers:\n    {lines}\n}}\n"


def random_network(number: int) -> tuple[str, ExportBundle]:
    """A program, and its network with random weights, ready to be exported."""
    random = Random(number)
    text = random_program(random, number)
    model = build_perturbed(neural.parse(text).build)
    with_mask = random.random() < 0.6
    return_logits = random.random() < 0.3
    try:
        bundle = create_bundle(model, "net", with_mask=with_mask, return_logits=return_logits)
    except ExportError:  # images and features have no padding
        bundle = create_bundle(model, "net", return_logits=return_logits)
    return text, bundle


def sample_trials(bundle: ExportBundle, number: int) -> list[tuple[int, ...]]:
    """Batch sizes and lengths that the network takes, other than those of the export."""
    random = Random(1000 + number)
    trials: list[tuple[int, ...]] = []
    for _ in range(20):
        trial = (random.randint(1, 3), random.choice(LENGTHS), random.choice(LENGTHS))
        trial = trial if bundle.has_target else trial[:2]
        if trial not in (*trials, *bundle.trial_sizes) and bundle._accepts(*trial):
            trials.append(trial)
        if len(trials) == MAX_TRIALS:
            break
    return trials


def export_and_compare(
    text: str, bundle: ExportBundle, number: int, name: str, folder: Path
) -> Result:
    """Write one network in one format, read it back and compare."""
    try:
        if name == "compiled":
            network = neural.parse(text).network
            compiled = compile_network(network)
            with import_network(compiled.text, compiled.name) as create:
                model = create()
                model.load_state_dict(bundle.model.state_dict())
                model.eval()
                call = model.logits if bundle.return_logits else model
                return compare(bundle, call, number, name)
        exporter = registry.get(name)
        path = folder / f"net{exporter.suffix}"
        export(bundle, exporter, path)
        adapted = exporter().adapt(bundle)
        return compare(adapted, exporter().read(adapted, path), number, name)
    except (ExportError, SourceExportError) as error:
        return Result(number, name, "refused", str(error))
    except Exception as error:  # a user would see a traceback
        return Result(number, name, "crash", f"{type(error).__name__}: {error}")


def compare(bundle: ExportBundle, call: Any, number: int, name: str) -> Result:
    """Compare outputs at several shapes. A file may refuse shapes below those of the export."""
    largest, too_short = 0.0, 0
    for trial in sample_trials(bundle, number):
        inputs = bundle.create_batch(*trial)
        expected = bundle(*inputs)
        with torch.no_grad():
            try:
                output = call(*inputs)
            except Exception as error:
                message = str(error).strip().splitlines()[0]
                if is_short(bundle, trial) and re.match("Guard failed|Expected input at", message):
                    too_short += 1
                    continue
                return Result(number, name, "wrong", f"fails at {trial}: {message}")
        if output.shape != expected.shape:
            return Result(number, name, "wrong", f"{output.shape} at {trial}, not {expected.shape}")
        mask = bundle.compute_output_mask(inputs, expected)
        difference = max_difference(output, expected, mask)
        if not difference <= TOLERANCE:
            message = f"differs by {difference:.2g} at {trial}"
            return Result(number, name, "wrong", message, difference)
        largest = max(largest, difference)
    return Result(number, name, "agrees", difference=largest, too_short=too_short)


def is_short(bundle: ExportBundle, trial: tuple[int, ...]) -> bool:
    """Whether a sequence is shorter than all that the export tried."""
    shortest = [min(lengths) for lengths in zip(*bundle.trial_sizes, strict=True)]
    return any(length < minimum for length, minimum in zip(trial[1:], shortest[1:], strict=True))


def results(numbers: Iterable[int], formats: Iterable[str]) -> Iterator[Result]:
    """Every network in every format."""
    with user_attentions():
        for number in numbers:
            text, bundle = random_network(number)
            for name in formats:
                folder = Path(tempfile.mkdtemp(prefix="random-network-"))
                try:
                    yield export_and_compare(text, bundle, number, name, folder)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)


def reasons(message: str) -> list[str]:
    """Reasons in an error message, without the names and numbers of the network."""
    lines = [line.strip() for line in message.splitlines()]
    lines = lines[1:] if len(lines) > 1 else lines
    return sorted(
        {re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", re.sub(r"^[\w.]+: ", "", line)) for line in lines}
    )


def table(all_results: list[Result]) -> str:
    """Counts of each status per format; then the refusals by reason."""
    lines = [
        "| format | agree | largest difference | some lengths refused | refused | wrong | crash |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in FORMATS:
        selected = [result for result in all_results if result.format == name]
        if not selected:
            continue
        count = Counter(result.status for result in selected)
        largest = max(
            (result.difference for result in selected if result.status == "agrees"), default=0.0
        )
        short = sum(result.too_short > 0 for result in selected)
        numbers = [str(count["agrees"]), f"{largest:.0e}", str(short)]
        numbers += [str(count[status]) for status in ("refused", "wrong", "crash")]
        lines.append(f"| `{name}` | {' | '.join(numbers)} |")
    refusals = Counter(
        (result.format, reason)
        for result in all_results
        if result.status == "refused"
        for reason in reasons(result.message)
    )
    lines += ["", "| refused | networks | because |", "|---|--:|---|"] if refusals else []
    lines += [
        f"| `{name}` | {count} | {reason} |" for (name, reason), count in refusals.most_common()
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--log", type=Path, help="a JSON line per network and format")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    all_results, start = [], time.monotonic()
    for result in results(
        range(arguments.first, arguments.first + arguments.count), arguments.formats
    ):
        all_results.append(result)
        if arguments.log:
            with arguments.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(result), ensure_ascii=False) + "\n")
        if result.status in ("wrong", "crash"):
            print(
                f"network {result.network}, {result.format}: {result.status}: {result.message}",
                flush=True,
            )
    print(table(all_results))
    minutes = (time.monotonic() - start) / 60
    print(f"\n{arguments.count} networks in {minutes:.0f} min", file=sys.stderr)
    return int(any(result.status in ("wrong", "crash") for result in all_results))


if __name__ == "__main__":
    sys.exit(main())

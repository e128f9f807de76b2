"""Random networks in every export format: does what was written agree with the network?

    python tests/exports/random_networks.py --count 300

Programs are drawn from all layers, mechanisms and positions, with two mechanisms of a user whose
helpers have names of ours. Every format is read back and run at lengths that the export itself did
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

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a file, `tests` is not in reach

import torch

import neural
from neural.compiling import compile_network, imported_network
from neural.export import export
from neural.export_inputs import CannotExport, Leaving, difference, leaving_of
from neural.exports import registry
from neural.language.check import check
from neural.modules.attention import registry as attention
from neural.modules.source.symbols import CannotCompile
from neural.standard import CATALOGUE
from tests.exports.networks import learned
from tests.exports.user_attentions.fading import Fading
from tests.exports.user_attentions.sharpened import Sharpened
from tests.language.strategies import Writer, sample_from

TOLERANCE = 1e-4
FORMATS = ("compiled", "torch", "onnx", "keras", "huggingface")
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
"""Between encoder and decoder, so that the mask of the source changes on its way."""
TAILS = (
    'Residual(MultiHeadAttention(num_heads=1, attention="topk", k=3))',
    "GRU(5)",
    *WINDOWS,
    "GlobalAveragePooling1D()",
    "LSTM(4, bidirectional=true, return_sequences=false)",
)


@dataclass(frozen=True)
class Result:
    """What came of one network in one format."""

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
    """Programs may name the mechanisms of a user."""
    before = dict(attention._added)
    for mechanism in (Sharpened, Fading):
        attention.add(mechanism)
    try:
        yield
    finally:
        attention._added = before


def random_program(random: Random, number: int) -> str:
    """A program that passes `check`: of any layers, and every third one about attention."""
    if number % 3:
        return sample_from(random).text
    while True:
        text = attention_program(random, number // 3)
        if not check(text, CATALOGUE).mistakes:
            return text


def attention_program(random: Random, number: int) -> str:
    """Transformer blocks, of one sequence or two; the number decides mechanism and position."""
    names = attention.names()
    across = [name for name in names if not attention.get(name).self_attention_only]
    width = random.choice([4, 8, 12])
    position = POSITIONS[number % len(POSITIONS)]

    def block(kind: str, *more: str) -> str:
        mechanism = Writer(random, width).call(attention, names[number % len(names)])
        options = [f"num_heads={random.choice([1, 2, 4])}", f"attention={mechanism}", *more]
        options += [f"positional={position}"] if random.random() < 0.8 else []
        options += random.sample(OPTIONS, random.randint(0, 3))
        copies = random.choice(["", "", " * 2"])
        return f"Transformer{kind}({', '.join(options)}){copies}"

    has_ids, has_target = random.random() < 0.5, random.random() < 0.5
    layers = [f"Embedding(11, {width}{random.choice(['', ', pad_id=0'])})"] if has_ids else []
    layers.append(block("Encoder" if has_target or random.random() < 0.5 else "Decoder"))
    if has_target:
        cross = Writer(random, width).call(attention, random.choice(across))
        chosen = [f"cross_attention={cross}"] if random.random() < 0.7 else []
        layers += [random.choice(WINDOWS)] if random.random() < 0.4 else []
        layers.append(block("Decoder", *chosen))
    layers += random.sample(TAILS, random.randint(0, 2))
    size = "(None,)" if has_ids else f"(None, {width})"
    lines = "\n    ".join(layers)
    return f"network Sample {{\n  input: {size}\n  layers:\n    {lines}\n}}\n"


def random_network(number: int) -> tuple[str, Leaving]:
    """A program, and its network with random weights, ready to be exported."""
    random = Random(number)
    text = random_program(random, number)
    model = learned(neural.parse(text).build)
    masked = random.random() < 0.6
    scores = random.random() < 0.3
    try:
        leaving = leaving_of(model, "net", masked=masked, scores=scores)
    except CannotExport:  # images and features have no padding
        leaving = leaving_of(model, "net", scores=scores)
    return text, leaving


def trials(leaving: Leaving, number: int) -> list[tuple[int, ...]]:
    """Batches and lengths that the network takes, others than the export tried."""
    random = Random(1000 + number)
    found: list[tuple[int, ...]] = []
    for _ in range(20):
        trial = (random.randint(1, 3), random.choice(LENGTHS), random.choice(LENGTHS))
        trial = trial if leaving.has_target else trial[:2]
        if trial not in (*found, *leaving.trials) and leaving._takes(*trial):
            found.append(trial)
    return found[:4]


def run(text: str, leaving: Leaving, number: int, name: str, folder: Path) -> Result:
    """Write one network in one format, read it back and compare."""
    try:
        if name == "compiled":
            network = neural.parse(text).network
            compiled = compile_network(network)
            with imported_network(compiled.text, compiled.name) as make:
                model = make()
                model.load_state_dict(leaving.model.state_dict())
                model.eval()
                call = model.scores if leaving.scores else model
                return compare(leaving, call, number, name)
        form = registry.get(name)
        path = folder / f"net{form.suffix}"
        export(leaving, form, path)
        adapted = form().adapt(leaving)
        return compare(adapted, form().read(adapted, path), number, name)
    except (CannotExport, CannotCompile) as refused:
        return Result(number, name, "refused", str(refused))
    except Exception as problem:  # what a user would see as a traceback
        return Result(number, name, "crash", f"{type(problem).__name__}: {problem}")


def compare(leaving: Leaving, call: Any, number: int, name: str) -> Result:
    """At several shapes; a reader that refuses a shape with a message has refused."""
    largest, too_short = 0.0, 0
    for trial in trials(leaving, number):
        inputs = leaving.batch(*trial)
        wanted = leaving(*inputs)
        with torch.no_grad():
            try:
                got = call(*inputs)
            except Exception as problem:
                first = str(problem).strip().splitlines()[0]
                if is_short(leaving, trial) and re.match("Guard failed|Expected input at", first):
                    too_short += 1
                    continue
                return Result(number, name, "wrong", f"fails at {trial}: {first}")
        if got.shape != wanted.shape:
            return Result(number, name, "wrong", f"{got.shape} at {trial}, not {wanted.shape}")
        apart = difference(got, wanted, leaving.counted(inputs, wanted))
        if not apart <= TOLERANCE:
            return Result(number, name, "wrong", f"differs by {apart:.2g} at {trial}", apart)
        largest = max(largest, apart)
    return Result(number, name, "agrees", difference=largest, too_short=too_short)


def is_short(leaving: Leaving, trial: tuple[int, ...]) -> bool:
    """Whether a sequence is shorter than all that the export tried."""
    shortest = [min(lengths) for lengths in zip(*leaving.trials, strict=True)]
    return any(length < least for length, least in zip(trial[1:], shortest[1:], strict=True))


def results(numbers: Iterable[int], formats: Iterable[str]) -> Iterator[Result]:
    """Every network in every format."""
    with user_attentions():
        for number in numbers:
            text, leaving = random_network(number)
            for name in formats:
                folder = Path(tempfile.mkdtemp(prefix="random-network-"))
                try:
                    yield run(text, leaving, number, name, folder)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)


def reasons(message: str) -> list[str]:
    """What a refusal says, without the names and numbers of this network."""
    lines = [line.strip() for line in message.splitlines()]
    lines = lines[1:] if len(lines) > 1 else lines
    return sorted(
        {re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", re.sub(r"^[\w.]+: ", "", line)) for line in lines}
    )


def table(found: list[Result]) -> str:
    """Per format how many agree, are refused, are wrong and crash; then the refusals by reason."""
    lines = [
        "| format | agree | largest difference | some lengths refused | refused | wrong | crash |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in FORMATS:
        own = [result for result in found if result.format == name]
        if not own:
            continue
        count = Counter(result.status for result in own)
        largest = max(
            (result.difference for result in own if result.status == "agrees"), default=0.0
        )
        short = sum(result.too_short > 0 for result in own)
        numbers = [str(count["agrees"]), f"{largest:.0e}", str(short)]
        numbers += [str(count[status]) for status in ("refused", "wrong", "crash")]
        lines.append(f"| `{name}` | {' | '.join(numbers)} |")
    told = Counter(
        (result.format, reason)
        for result in found
        if result.status == "refused"
        for reason in reasons(result.message)
    )
    lines += ["", "| refused | networks | because |", "|---|--:|---|"] if told else []
    lines += [f"| `{name}` | {count} | {reason} |" for (name, reason), count in told.most_common()]
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
    found, start = [], time.monotonic()
    for result in results(
        range(arguments.first, arguments.first + arguments.count), arguments.formats
    ):
        found.append(result)
        if arguments.log:
            with arguments.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(result), ensure_ascii=False) + "\n")
        if result.status in ("wrong", "crash"):
            print(
                f"network {result.network}, {result.format}: {result.status}: {result.message}",
                flush=True,
            )
    print(table(found))
    minutes = (time.monotonic() - start) / 60
    print(f"\n{arguments.count} networks in {minutes:.0f} min", file=sys.stderr)
    return int(any(result.status in ("wrong", "crash") for result in found))


if __name__ == "__main__":
    sys.exit(main())

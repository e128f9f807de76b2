"""Broken programs by the thousand: whatever the text, there is an answer, soon, and never a traceback.

Of 20,000 broken texts, 3,200 are whole programs and go through everything; the others are a few lines each and are
read, which is quicker. `ROUNDS=200000 FUZZ_SEED=7 pytest tests/language/test_fuzz.py` tries others, and
tests/fuzz/nightly.py tries a million.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neural.core.diagnostics import Findings, Source, render
from neural.language.check import check
from neural.language.interchange import from_json, to_json
from neural.language.parser import parse
from neural.language.printer import print_program
from neural.standard import CATALOGUE
from tests import programs
from tests.language.strategies import comments_in, without_places

ROUNDS = int(os.environ.get("ROUNDS", "20000"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
CHUNKS = 2
WHOLE = 0.16
"""The share of rounds that are whole programs."""
SYNTAX = "E0112"
"""Codes below this one mean that the text could not be read as it stands."""

EVERYTHING = """
# A program with a bit of everything.

network Everything {
  input: (None, 12)  # any length
  layers:
    Residual(LayerNormalization(), Dense(12, activation="gelu")) * 2  # around
    TransformerEncoder(
      num_heads=3,
      d_model=12,
      dropout=0.1,  # of the weights
      attention="localized", window=5,
      positional=relative(buckets=8)
    ) * 2
    LSTM(5, bidirectional=true)
    GlobalAveragePooling1D()
    Output(2, activation="softmax")
  loss: sparse_categorical_crossentropy(label_smoothing=0.1)
  optimizer: AdamW(learning_rate=PiecewiseConstantDecay([10, 20], [1e-3, 5e-4, 1e-4]), clipnorm=1.0)
  train {
    epochs: 3
    data: "some/where"  # a folder
  }
}

network Image {
  input: (17, 13, 3)
  layers:
    Conv2D(7, kernel_size=(3, 3), strides=2, padding="same", activation="relu")
    MaxPooling2D(pool_size=2)
    BatchNormalization()
    Reshape(target_shape=(-1, 7))
    MultiHeadAttention(num_heads=2, key_dim=5)
    Flatten()
    Dropout(0.3)
    Dense(1)
  loss: "mse"
}
"""
FRAGMENT = """
# layers alone
Dense(5, activation='relu')
Conv1D(3, 2) * 4
optimizer: SGD(learning_rate=Warmup(100, CosineDecay(0.1, 1000)), momentum=0.9, nesterov=True)
train { batch_size: 16  # small
  steps: 1_000 }
"""
EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/**/*.neural"))
TEXTS = [
    EVERYTHING, FRAGMENT, *(text for name, text in vars(programs).items() if name.isupper() and isinstance(text, str)),
    *(file.read_text(encoding="utf-8") for file in EXAMPLES),
]  # fmt: skip
PIECES = ["".join(lines[at : at + 3]) for lines in (text.splitlines(keepends=True) for text in TEXTS)
          for at in range(0, len(lines), 3)]  # fmt: skip
"""A few lines each."""
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d_.]*(?:e-?\d+)?")
EXTREME = [
    "0", "-1", "1e308", str(10**30), "2.5", "1e-320", "2147483647", "2147483648", "-0.0", "1", "99999", "9" * 50, "None"
]  # fmt: skip
ODD = [*"(){}[],:=*#\"'\\\n\t\r\0 .-+é名🙂٣²", "\u2028", "\ufeff", "\x1b", "\ud800", "ß" * 20]
WORDS = [
    "network", "input", "layers", "loss", "optimizer", "train", "true", "None", "Dense", "Embedding", "Output", "Adam",
    "TransformerDecoder", "self", "mse", "units",
]  # fmt: skip


class Mutator:
    """Breaks a text, a little or a lot."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ways = [
            self.drop_character, self.insert_character, self.double_character, self.swap_characters, self.drop_token,
            self.double_token, self.swap_tokens, self.insert_word, self.change_number, self.change_number,
            self.truncate, self.drop_line, self.double_line, self.splice, self.drop_quote_or_bracket, self.nest,
        ]  # fmt: skip

    def text(self, texts: list[str] = TEXTS) -> str:
        text = self.random.choice(texts)
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            text = self.random.choice(self.ways)(text)
        return text[:20_000]

    def at(self, text: str) -> int:
        return self.random.randrange(len(text) + 1)

    def drop_character(self, text: str) -> str:
        at = self.at(text)
        return text[:at] + text[at + 1 :]

    def insert_character(self, text: str) -> str:
        at = self.at(text)
        return text[:at] + self.random.choice(ODD) + text[at:]

    def double_character(self, text: str) -> str:
        at = self.at(text)
        return text[:at] + text[at : at + 1] * 2 + text[at + 1 :]

    def swap_characters(self, text: str) -> str:
        at = self.at(text)
        return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]

    def tokens(self, text: str) -> tuple[list[str], int]:
        found = TOKEN.findall(text) or [""]
        return found, self.random.randrange(len(found))

    def drop_token(self, text: str) -> str:
        found, at = self.tokens(text)
        return "".join(found[:at] + found[at + 1 :])

    def double_token(self, text: str) -> str:
        found, at = self.tokens(text)
        return "".join(found[:at] + [found[at]] * self.random.choice([2, 3, 40]) + found[at + 1 :])

    def swap_tokens(self, text: str) -> str:
        found, at = self.tokens(text)
        other = self.random.randrange(len(found))
        found[at], found[other] = found[other], found[at]
        return "".join(found)

    def insert_word(self, text: str) -> str:
        found, at = self.tokens(text)
        return "".join([*found[:at], " ", self.random.choice(WORDS), " ", *found[at:]])

    def change_number(self, text: str) -> str:
        found = list(NUMBER.finditer(text))
        if not found:
            return text
        one = self.random.choice(found)
        return text[: one.start()] + self.random.choice(EXTREME) + text[one.end() :]

    def truncate(self, text: str) -> str:
        return text[: self.at(text)] if self.random.random() < 0.5 else text[self.at(text) :]

    def drop_line(self, text: str) -> str:
        lines = text.splitlines(keepends=True) or [""]
        del lines[self.random.randrange(len(lines))]
        return "".join(lines)

    def double_line(self, text: str) -> str:
        lines = text.splitlines(keepends=True) or [""]
        lines.insert(self.random.randrange(len(lines)), self.random.choice(lines))
        return "".join(lines)

    def splice(self, text: str) -> str:
        other = self.random.choice(TEXTS)
        return text[: self.at(text)] + other[self.at(other) :]

    def drop_quote_or_bracket(self, text: str) -> str:
        places = [at for at, letter in enumerate(text) if letter in "(){}[]\"':,"]
        if not places:
            return text
        at = self.random.choice(places)
        return text[:at] + self.random.choice(["", "", "(", ")", "]", "}", '"']) + text[at + 1 :]

    def nest(self, text: str) -> str:
        at, times = self.at(text), self.random.choice([3, 40])
        return text[:at] + self.random.choice(["(", "[", "{", "Residual(", "a {", "data: "]) * times + text[at:]


def survives(text: str) -> bool:
    """Put a text through everything; whether it passes the check. Fails where something raises or takes long."""
    start = time.process_time()
    result = check(text, CATALOGUE, fragment=text.startswith(FRAGMENT[:5]))
    source = Source("fuzz.neural", text)
    for one in result.diagnostics:
        assert render(one, source)
    if not any(one.code < SYNTAX for one in result.mistakes):
        printed = print_program(result.program)
        again = parse(printed, Findings())
        assert without_places(again) == without_places(result.program)
        assert print_program(again) == printed
        assert comments_in(printed) == comments_in(text)
    if not result.mistakes:
        assert to_json(from_json(to_json(result.program))) == to_json(result.program)
    assert time.process_time() - start < 1
    return not result.mistakes


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_broken_program_raises_or_hangs(chunk):
    mutator = Mutator(SEED * CHUNKS + chunk)
    passed: Counter[bool] = Counter()
    for _ in range(int(ROUNDS * WHOLE) // CHUNKS):
        text = mutator.text()
        with shown(text):
            passed[survives(text)] += 1
    # a fuzzer whose programs all pass, or all fail at the first word, would prove nothing
    share = passed[True] / passed.total()
    print(f"{passed[True]} of {passed.total()} still pass")
    assert 0.01 < share < 0.5


def test_no_broken_lines_raise_or_hang():
    mutator = Mutator(SEED)
    start, passed = time.process_time(), 0
    for _ in range(ROUNDS - int(ROUNDS * WHOLE)):
        text = mutator.text(PIECES)
        with shown(text):
            findings = Findings()
            parse(text, findings)
            for one in findings.items[:3]:
                assert render(one, Source("fuzz.neural", text))
        passed += not findings.items
    assert time.process_time() - start < 0.01 * ROUNDS
    assert 0.01 < passed / ROUNDS < 0.8


@contextmanager
def shown(text: str) -> Iterator[None]:
    """With the text, whatever goes wrong."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text!r}") from error


# --- what random programs have found ----------------------------------------------------------------------------


def said(text: str, **options) -> list[str]:
    return [one.code for one in check(text, CATALOGUE, **options).mistakes]


def test_a_mistake_behind_more_notes_than_are_kept_still_counts():
    notes = "TransformerEncoder(num_heads=2, ff_dim=8)\n" * 150
    text = f"network A {{ input: (7, 4) layers:\n{notes}Dense(unit=5)\n}}"
    assert said(text) == ["E0202"]
    assert not check(text, CATALOGUE).networks


def test_a_network_behind_a_hundred_mistakes_is_no_network():
    wrong = "Dense(unit=5)\n" * 150
    text = f"network A {{ input: (7, 4) layers:\n{wrong}}}\nnetwork B {{ input: (7,) layers: Dense() }}"
    assert len(said(text)) == 100
    assert not check(text, CATALOGUE).networks


def test_a_decoder_that_contradicts_itself_behind_an_encoder_is_one_mistake():
    blocks = "TransformerEncoder(num_heads=2)\nTransformerDecoder(num_heads=3, d_model=4)"
    assert said(f"network A {{ input: (7, 4) layers:\n{blocks}\n}}") == ["E0203"]


def test_an_embedding_of_features_is_a_mistake_even_where_their_rank_fits():
    layers = "GlobalAveragePooling1D()\nEmbedding(input_dim=5, output_dim=3)"
    assert said(f"network A {{ input: (7, 4) layers:\n{layers}\n}}") == ["E0306"]


@pytest.mark.parametrize("longest", [5, 300, 5000])
def test_an_open_length_is_measured_at_one_that_the_learned_positions_allow(longest):
    block = f'TransformerEncoder(num_heads=2, positional="learned", max_len={longest})'
    (network,) = check(f"network A {{ input: (None, 4) layers: {block} }}", CATALOGUE).networks
    assert network.assumed["T"] <= min(longest, 1024)
    (fixed,) = check(f"network A {{ input: ({longest}, 4) layers: {block} }}", CATALOGUE).networks
    assert network.cost.parameters == fixed.cost.parameters


def test_a_shape_of_thousands_of_axes_is_refused_and_not_multiplied_out():
    many = "2147483647, " * 1000
    assert said(f"network A {{ input: (7, 4) layers: Reshape(({many})) }}") == ["E0206"]
    assert said(f"network A {{ input: ({many}) layers: Flatten() }}") == ["E0410"]

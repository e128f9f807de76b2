"""Thousands of broken programs: every text is answered quickly and without a traceback.

Of 20,000 broken texts, 3,200 are complete programs and go through everything; the others are a few
lines each and are only parsed, which is quicker. `ROUNDS=200000 FUZZ_SEED=7 pytest
tests/language/test_fuzz.py` tries others, tests/fuzz/nightly.py a million.
"""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neural.core.diagnostics import (
    DiagnosticCollector,
    SourceText,
    apply_fixes,
    render_diagnostic,
)
from neural.language.check import check
from neural.language.formatter import format_program
from neural.language.parser import parse
from neural.language.program_json import program_to_json
from neural.optim.catalogue import CATALOGUE
from tests import programs
from tests.cpu_time import limit_cpu_time
from tests.language.strategies import count_text_comments, strip_positions

ROUNDS = int(os.environ.get("ROUNDS", "20000"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
CHUNKS = 2
PROGRAM_SHARE = 0.16
"""Share of rounds with complete programs."""
LAST_SYNTAX_CODE = "E0112"
"""Codes below this one are syntax errors."""
FOREIGN_CODE = "E0114"
"""Code of a text in another language: its syntax errors are not reported."""

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
    EVERYTHING,
    FRAGMENT,
    *(text for name, text in vars(programs).items() if name.isupper() and isinstance(text, str)),
    *(file.read_text(encoding="utf-8") for file in EXAMPLES),
]
SNIPPETS = [
    "".join(lines[at : at + 3])
    for lines in (text.splitlines(keepends=True) for text in TEXTS)
    for at in range(0, len(lines), 3)
]
"""A few lines each."""
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d_.]*(?:e-?\d+)?")
EXTREME_NUMBERS = [
    "0",
    "-1",
    "1e308",
    str(10**30),
    "2.5",
    "1e-320",
    "2147483647",
    "2147483648",
    "-0.0",
    "1",
    "99999",
    "9" * 50,
    "None",
]
ODD_CHARACTERS = [
    *"(){}[],:=*#\"'\\\n\t\r\0 .-+é名🙂٣²",
    "\u2028",
    "\ufeff",
    "\x1b",
    "\ud800",
    "ß" * 20,
]
WORDS = [
    "network",
    "input",
    "layers",
    "loss",
    "optimizer",
    "train",
    "true",
    "None",
    "Dense",
    "Embedding",
    "Output",
    "Adam",
    "TransformerDecoder",
    "self",
    "mse",
    "units",
]


class Mutator:
    """Breaks a text, a little or a lot."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.mutations = [
            self.drop_character,
            self.insert_character,
            self.double_character,
            self.swap_characters,
            self.drop_token,
            self.double_token,
            self.swap_tokens,
            self.insert_word,
            self.change_number,
            self.change_number,
            self.truncate,
            self.drop_line,
            self.double_line,
            self.splice,
            self.drop_quote_or_bracket,
            self.nest,
        ]

    def make_text(self, texts: list[str] = TEXTS) -> str:
        text = self.random.choice(texts)
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            text = self.random.choice(self.mutations)(text)
        return text[:20_000]

    def random_offset(self, text: str) -> int:
        return self.random.randrange(len(text) + 1)

    def drop_character(self, text: str) -> str:
        offset = self.random_offset(text)
        return text[:offset] + text[offset + 1 :]

    def insert_character(self, text: str) -> str:
        offset = self.random_offset(text)
        return text[:offset] + self.random.choice(ODD_CHARACTERS) + text[offset:]

    def double_character(self, text: str) -> str:
        offset = self.random_offset(text)
        return text[:offset] + text[offset : offset + 1] * 2 + text[offset + 1 :]

    def swap_characters(self, text: str) -> str:
        offset = self.random_offset(text)
        return text[:offset] + text[offset : offset + 2][::-1] + text[offset + 2 :]

    def split_tokens(self, text: str) -> tuple[list[str], int]:
        tokens = TOKEN.findall(text) or [""]
        return tokens, self.random.randrange(len(tokens))

    def drop_token(self, text: str) -> str:
        tokens, index = self.split_tokens(text)
        return "".join(tokens[:index] + tokens[index + 1 :])

    def double_token(self, text: str) -> str:
        tokens, index = self.split_tokens(text)
        return "".join(
            tokens[:index] + [tokens[index]] * self.random.choice([2, 3, 40]) + tokens[index + 1 :]
        )

    def swap_tokens(self, text: str) -> str:
        tokens, index = self.split_tokens(text)
        other = self.random.randrange(len(tokens))
        tokens[index], tokens[other] = tokens[other], tokens[index]
        return "".join(tokens)

    def insert_word(self, text: str) -> str:
        tokens, index = self.split_tokens(text)
        return "".join([*tokens[:index], " ", self.random.choice(WORDS), " ", *tokens[index:]])

    def change_number(self, text: str) -> str:
        numbers = list(NUMBER.finditer(text))
        if not numbers:
            return text
        number = self.random.choice(numbers)
        return text[: number.start()] + self.random.choice(EXTREME_NUMBERS) + text[number.end() :]

    def truncate(self, text: str) -> str:
        return (
            text[: self.random_offset(text)]
            if self.random.random() < 0.5
            else text[self.random_offset(text) :]
        )

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
        return text[: self.random_offset(text)] + other[self.random_offset(other) :]

    def drop_quote_or_bracket(self, text: str) -> str:
        offsets = [offset for offset, character in enumerate(text) if character in "(){}[]\"':,"]
        if not offsets:
            return text
        offset = self.random.choice(offsets)
        return (
            text[:offset]
            + self.random.choice(["", "", "(", ")", "]", "}", '"'])
            + text[offset + 1 :]
        )

    def nest(self, text: str) -> str:
        offset, depth = self.random_offset(text), self.random.choice([3, 40])
        return (
            text[:offset]
            + self.random.choice(["(", "[", "{", "Residual(", "a {", "data: "]) * depth
            + text[offset:]
        )


def check_robustness(text: str) -> bool:
    """Put a text through everything; return whether it passes the check."""
    with limit_cpu_time():
        result = check(text, CATALOGUE, fragment=text.startswith(FRAGMENT[:5]))
        source = SourceText("fuzz.neural", text)
        for diagnostic in result.diagnostics:
            assert render_diagnostic(diagnostic, source)
        apply_fixes(text, result.diagnostics)
        codes = {diagnostic.code for diagnostic in result.errors}
        if min(codes, default=LAST_SYNTAX_CODE) >= LAST_SYNTAX_CODE and FOREIGN_CODE not in codes:
            formatted = format_program(result.program)
            reparsed = parse(formatted, DiagnosticCollector())
            assert strip_positions(reparsed) == strip_positions(result.program)
            assert format_program(reparsed) == formatted
            assert count_text_comments(formatted) == count_text_comments(text)
        if not result.errors:
            assert json.dumps(program_to_json(result.program), allow_nan=False)
    return not result.errors


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_broken_program_raises_or_hangs(chunk):
    mutator = Mutator(SEED * CHUNKS + chunk)
    passed: Counter[bool] = Counter()
    for _ in range(int(ROUNDS * PROGRAM_SHARE) // CHUNKS):
        text = mutator.make_text()
        with show_on_failure(text):
            passed[check_robustness(text)] += 1
    # A fuzzer whose programs all pass, or all fail at the first token, tests nothing.
    share = passed[True] / passed.total()
    print(f"{passed[True]} of {passed.total()} still pass")
    assert 0.01 < share < 0.5


def test_no_broken_lines_raise_or_hang():
    mutator = Mutator(SEED)
    passed = 0
    for _ in range(ROUNDS - int(ROUNDS * PROGRAM_SHARE)):
        text = mutator.make_text(SNIPPETS)
        with show_on_failure(text):
            diagnostics = DiagnosticCollector()
            with limit_cpu_time():
                parse(text, diagnostics)
            for diagnostic in diagnostics.items[:3]:
                assert render_diagnostic(diagnostic, SourceText("fuzz.neural", text))
        passed += not diagnostics.items
    assert 0.01 < passed / ROUNDS < 0.8


@contextmanager
def show_on_failure(text: str) -> Iterator[None]:
    """Add the text to every failure."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text!r}") from error


# --- regressions found by fuzzing -----------------------------------------------------------------


def get_error_codes(text: str, **options) -> list[str]:
    return [error.code for error in check(text, CATALOGUE, **options).errors]


def test_an_error_after_more_notes_than_are_kept_still_counts():
    notes = "TransformerEncoder(num_heads=2, ff_dim=8)\n" * 150
    text = f"network A {{ input: (7, 4) layers:\n{notes}Dense(unit=5)\n}}"
    assert get_error_codes(text) == ["E0202"]
    assert not check(text, CATALOGUE).networks


def test_a_network_after_a_hundred_errors_is_not_returned():
    wrong = "Dense(unit=5)\n" * 150
    text = f"network A {{ input: (7, 4) layers:\n{wrong}}}\nnetwork B {{ input: (7,) layers: Dense() }}"
    assert len(get_error_codes(text)) == 100
    assert not check(text, CATALOGUE).networks


def test_an_invalid_decoder_after_an_encoder_is_one_error():
    blocks = "TransformerEncoder(num_heads=2)\nTransformerDecoder(num_heads=3, d_model=4)"
    assert get_error_codes(f"network A {{ input: (7, 4) layers:\n{blocks}\n}}") == ["E0203"]


def test_an_embedding_of_features_is_an_error_even_where_their_rank_fits():
    layers = "GlobalAveragePooling1D()\nEmbedding(input_dim=5, output_dim=3)"
    assert get_error_codes(f"network A {{ input: (7, 4) layers:\n{layers}\n}}") == ["E0306"]


@pytest.mark.parametrize("max_len", [5, 300, 5000])
def test_costs_of_an_open_length_respect_the_learned_positions(max_len):
    block = f'TransformerEncoder(num_heads=2, positional="learned", max_len={max_len})'
    (network,) = check(f"network A {{ input: (None, 4) layers: {block} }}", CATALOGUE).networks
    assert network.assumed_sizes["T"] <= min(max_len, 1024)
    (fixed,) = check(f"network A {{ input: ({max_len}, 4) layers: {block} }}", CATALOGUE).networks
    assert network.cost.parameters == fixed.cost.parameters


def test_a_shape_of_thousands_of_axes_is_refused_and_not_multiplied_out():
    many = "2147483647, " * 1000
    assert get_error_codes(f"network A {{ input: (7, 4) layers: Reshape(({many})) }}") == ["E0206"]
    assert get_error_codes(f"network A {{ input: ({many}) layers: Flatten() }}") == ["E0410"]

"""Words of Keras, PyTorch and Hugging Face: each has a hint, and one repair leaves no error.

snippets/words.md has calls and keys as the libraries' own documentation writes them.
"""

from __future__ import annotations

import re

import pytest

from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from tests.language.foreign_snippets import SNIPPET_FOLDER, repair

SHAPES = {"sequence": "(32, 64)", "tokens": "(32,)", "image": "(32, 32, 3)"}
"""Input for the layers under a heading of words.md."""


def read_words() -> dict[str, list[str]]:
    """The lines of words.md by heading."""
    text = (SNIPPET_FOLDER / "words.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^## ([^\n]+)\n\n```\n(.*?)^```$", text, re.M | re.S)
    return {heading: block.splitlines() for heading, block in blocks}


WORDS = read_words()


def find_errors(text: str) -> list[str]:
    """The errors that are left after one repair."""
    errors = check(repair(text), CATALOGUE).errors
    return [f"{error.code} {error.message}: {error.helps}" for error in errors]


def write_program(layers: str, rest: str = "", shape: str = "(32, 64)") -> str:
    return f"network Net {{\n  input: {shape}\n  layers:\n    {layers}\n{rest}}}\n"


def test_there_are_words_under_every_heading():
    assert set(WORDS) == {*SHAPES, "optimizer", "loss", "train key", "section"}
    assert sum(map(len, WORDS.values())) >= 250


@pytest.mark.parametrize(
    ("shape", "layer"), [(shape, line) for name, shape in SHAPES.items() for line in WORDS[name]]
)
def test_a_layer_is_right_after_one_repair(shape, layer):
    last = "" if "Head" in layer or "Output" in layer else "\n    Dense(3)"
    assert not find_errors(write_program(layer + last, shape=shape))


@pytest.mark.parametrize("optimizer", WORDS["optimizer"])
def test_an_optimizer_is_right_after_one_repair(optimizer):
    assert not find_errors(write_program("Dense(3)", f'  loss: "mse"\n  optimizer: {optimizer}\n'))


@pytest.mark.parametrize("loss", WORDS["loss"])
def test_a_loss_is_right_after_one_repair(loss):
    assert not find_errors(write_program("Dense(3)", f"  loss: {loss}\n", "(64,)"))


@pytest.mark.parametrize("key", WORDS["train key"])
def test_a_key_of_training_is_right_after_one_repair(key):
    assert not find_errors(
        write_program("Dense(3)", f'  train {{\n    data: "x"\n    {key}\n  }}\n')
    )


@pytest.mark.parametrize("section", WORDS["section"])
def test_a_section_is_right_after_one_repair(section):
    rest = f'  loss: "mse"\n  {section}\n'
    assert not find_errors(write_program("Dense(3)", rest))

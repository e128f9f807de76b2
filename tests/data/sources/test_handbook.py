"""The topics of Python's help(); the text differs between versions."""

from pathlib import Path

import numpy as np

from neural.data.sources.handbook import CHARACTERS, Handbook, read_handbook
from tests.tasks.networks import LETTERS


def test_the_handbook_is_a_long_text():
    assert len(read_handbook()) > 200_000


def test_characters_of_later_versions_are_replaced_so_that_the_demo_fits(monkeypatch):
    """Python 3.14 has 140 characters; the network of the demo has 103."""
    monkeypatch.setattr("pydoc_data.topics.topics", {"b": "x蛇$", "a": "€ 5"})
    assert read_handbook() == "? 5\n\nx??\n"
    program = Path(__file__).parents[3] / "examples" / "demo" / "characters.neural"
    assert f"Output({len(CHARACTERS)}," in program.read_text(encoding="utf-8")


def test_labels_are_the_text_shifted_by_one_character():
    examples = Handbook.read("handbook", LETTERS)
    x, y = examples.train["x"], examples.train["y"]
    assert x.shape == y.shape == (len(x), 16)
    np.testing.assert_array_equal(np.append(x.ravel()[1:], y[-1, -1]), y.ravel())
    text = (
        "".join(examples.tokens[token_id] for token_id in x[:20].ravel())
        .replace("⏎", "\n")
        .replace("␣", " ")
    )
    assert read_handbook().startswith(text)


def test_the_end_is_held_out():
    assert Handbook.read("handbook", LETTERS).ordered

"""Python's own handbook; its wording differs between versions."""

import numpy as np

from neural.tasks.data.sources.handbook import Handbook, handbook_text
from tests.tasks.networks import LETTERS


def test_the_handbook_is_a_long_text():
    assert len(handbook_text()) > 200_000


def test_what_follows_is_the_same_text_one_character_on():
    found = Handbook.read("handbook", LETTERS)
    x, y = found.train["x"], found.train["y"]
    assert x.shape == y.shape == (len(x), 16)
    np.testing.assert_array_equal(np.append(x.ravel()[1:], y[-1, -1]), y.ravel())
    shown = "".join(found.tokens[one] for one in x[:20].ravel()).replace("⏎", "\n").replace("␣", " ")
    assert handbook_text().startswith(shown)


def test_the_end_is_held_out():
    assert Handbook.read("handbook", LETTERS).ordered

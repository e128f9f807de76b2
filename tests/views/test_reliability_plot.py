"""The reliability diagram as a file."""

import numpy as np

from neural.tasks.cutting.reliability import reliability
from neural.views.reliability_plot import reliability_plot


def diagrams():
    random = np.random.default_rng(0)
    p = random.random(500)
    hits = random.random(500) < p
    return {name: reliability(one, hits, np.arange(500) % 9) for name, one in (("none", p**2), ("_platt", p))}


def test_the_diagram_is_drawn_with_what_it_compares_and_the_diagonal(tmp_path):
    svg, png = reliability_plot(diagrams(), tmp_path / "reliability.valid", title="P(boundary) <1>")
    assert [svg.name, png.name] == ["reliability.valid.svg", "reliability.valid.png"]
    text = svg.read_text(encoding="utf-8")
    for words in ("P(boundary) &lt;1&gt;", "none", "_platt", "perfect", "share that came true", "elements", ">100<"):
        assert words in text, words
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_bytes(tmp_path):
    (first,) = reliability_plot(diagrams(), tmp_path / "first", title="", formats=("svg",))
    (second,) = reliability_plot(diagrams(), tmp_path / "second", title="", formats=("svg",))
    assert first.read_bytes() == second.read_bytes()


def test_one_bin_can_be_drawn(tmp_path):
    alone = reliability(np.array([1.0]), np.array([1.0]), np.array([0]))
    assert reliability_plot({"none": alone}, tmp_path / "alone", title="one element", formats=("png",))

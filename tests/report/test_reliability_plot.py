"""Reliability diagrams as files."""

import numpy as np

from neural.report.reliability_plot import draw_reliability
from neural.tasks.segmentation.calibration_error import compute_reliability


def create_diagrams():
    random = np.random.default_rng(0)
    truth = random.random(500)
    labels = random.random(500) < truth
    return {
        name: compute_reliability(predicted, labels, np.arange(500) % 9)
        for name, predicted in (("none", truth**2), ("_platt", truth))
    }


def test_the_plot_has_all_methods_and_the_diagonal(tmp_path):
    svg, png = draw_reliability(
        create_diagrams(), tmp_path / "reliability.valid", title="P(boundary) <1>"
    )
    assert [svg.name, png.name] == ["reliability.valid.svg", "reliability.valid.png"]
    text = svg.read_text(encoding="utf-8")
    for label in (
        "P(boundary) &lt;1&gt;",
        "uncalibrated",
        "_platt",
        "perfect",
        "observed frequency",
        "15 bins of 33 to 34 elements",
    ):
        assert label in text, label
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_bytes(tmp_path):
    (first,) = draw_reliability(create_diagrams(), tmp_path / "first", title="", formats=("svg",))
    (second,) = draw_reliability(create_diagrams(), tmp_path / "second", title="", formats=("svg",))
    assert first.read_bytes() == second.read_bytes()


def test_one_bin_can_be_drawn(tmp_path):
    diagram = compute_reliability(np.array([1.0]), np.array([1.0]), np.array([0]))
    assert draw_reliability(
        {"none": diagram}, tmp_path / "single", title="one element", formats=("png",)
    )
